// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/command_text.h"

#include "common/base/json_writer.h"
#include "operator/api/launch.h"
#include "operator/api/meta.h"
#include "operator/api/podagent.h"
#include "operator/reconcile/names.h"

#include <inttypes.h>

static int64_t grace_ms(const struct group_decision *d)
{
    return podagent_grace_s(d->template.grace_s) * 1000;
}

const char *command_text_stop(struct group_decision *d, int32_t attempt, bool end)
{
    return json_print(d->a, "{'group':%s,'attempt':%" PRId64 ",'graceMs':%" PRId64 "%-s}", d->wg->obj.meta.uid,
                      (int64_t)attempt, grace_ms(d), end ? ",\"end\":true" : "");
}

static const char *master_host(struct group_decision *d)
{
    return d->pods.bundles ? d->pods.bundles->master_host : group_master_host(d->wg, d->a);
}

static void write_group(struct group_decision *d, struct json_writer *b)
{
    *b = WRITER_INIT;
    writer_object(b, NULL);
    writer_str(b, "group", d->wg->obj.meta.uid);
    writer_i64(b, "attempt", d->progress.attempt);
}

const char *command_text_prepare(struct group_decision *d, int32_t index)
{
    struct json_writer b;
    write_group(d, &b);
    writer_str(&b, "masterAddr", master_host(d));
    writer_str(&b, "masterIP", d->pods.current[0]->ip);
    if (d->pods.bundles && index == 0) // the other ranks in the pod may listen at any port
        writer_i64(&b, "masterPort", d->pods.bundles->master_port);
    writer_i64(&b, "graceMs", grace_ms(d));
    writer_object_end(&b);
    return writer_finish(&b, d->a);
}

static void write_numbers(struct json_writer *b, const char *key, const int *items, size_t n)
{
    writer_list(b, key);
    for (size_t i = 0; i < n; i++)
        writer_i64(b, NULL, items[i]);
    writer_list_end(b);
}

static void write_process(struct group_decision *d, struct json_writer *b, int32_t index, int32_t local)
{
    const struct agent_setup *setup = d->v->gang.setup;
    const struct group_bundles *bundles = d->pods.bundles;
    int32_t each = d->wg->spec.workers_per_replica, rank = index * each + local;
    int *gpus;
    writer_object(b, NULL);
    writer_i64(b, "rank", rank);
    writer_i64(b, "localRank", (bundles ? bundles->replicas[index].before * each : 0) + local);
    if (setup)
        writer_str(b, "ticket", setup->ticket(setup->ctx, d->wg->obj.meta.uid, d->progress.attempt, rank, d->a));
    if (bundles && !group_bundles_uncounted(d->wg, &bundles->replicas[index])) {
        size_t n = group_bundles_gpus(d->wg, &bundles->replicas[index], local, d->a, &gpus);
        write_numbers(b, "gpus", gpus, n);
    }
    writer_object_end(b);
}

bool command_text_restarts(struct group_decision *d, int32_t index, int32_t local)
{
    int32_t rank = index * d->wg->spec.workers_per_replica + local;
    return ranks_state(d->v, d->progress.attempt, d->pods.ranks.facts[index], rank) == RANK_TO_RESTART;
}

// The processes of all replicas in the pod.
static void write_processes(struct group_decision *d, struct json_writer *b, int32_t index, bool failed_only)
{
    writer_list(b, "processes");
    for (int32_t i = index; i >= 0; i = group_pods_next(&d->pods, i))
        for (int32_t local = 0; local < d->wg->spec.workers_per_replica; local++)
            if (!failed_only || command_text_restarts(d, i, local))
                write_process(d, b, i, local);
    writer_list_end(b);
}

static void write_launch(const struct launch *l, struct json_writer *b)
{
    writer_list(b, "env");
    for (size_t i = 0; i < l->n_env; i++)
        env_write(b, l->env[i].name, l->env[i].value);
    writer_list_end(b);
    if (l->n_command)
        writer_strs(b, "command", l->command, l->n_command);
}

// The GPUs of all bundles of the group in the pod. If the GPUs of one bundle are not known, no GPUs are named, because
// the bundle may have any of them.
static void write_bundle_gpus(struct group_decision *d, struct json_writer *b, int32_t index)
{
    for (int32_t i = index; i >= 0; i = group_pods_next(&d->pods, i))
        if (group_bundles_uncounted(d->wg, &d->pods.bundles->replicas[i]))
            return;
    writer_list(b, "indices");
    for (int32_t i = index; i >= 0; i = group_pods_next(&d->pods, i)) {
        const struct replica_bundle *bundle = &d->pods.bundles->replicas[i];
        for (int32_t k = 0; k < bundle->gpus; k++)
            writer_i64(b, NULL, bundle->gpu + k);
    }
    writer_list_end(b);
}

static void write_gpus(struct group_decision *d, struct json_writer *b, int32_t index)
{
    const struct worker_spec *s = &d->wg->spec.worker;
    int64_t count = resources_get(&d->pods.current[index]->requests, RESOURCE_GPU) / 1000;
    bool ours = s->module || s->python;
    bool own = s->gpu_visibility == GPU_VISIBILITY_DEFAULT ? ours : s->gpu_visibility == GPU_VISIBILITY_OWN;
    writer_object(b, "gpus");
    writer_str(b, "visibility", own ? "Own" : "All");
    if (d->pods.bundles)
        write_bundle_gpus(d, b, index);
    else if (s->gpus >= 0)
        writer_i64(b, "perWorker", s->gpus);
    if (count > 0)
        writer_i64(b, "count", count);
    writer_object_end(b);
}

const char *command_text_start(struct group_decision *d, int32_t index, bool restart)
{
    const struct workergroup_spec *s = &d->wg->spec;
    const struct group_bundles *p = d->pods.bundles;
    struct json_writer b;
    struct launch launch;
    launch_of(&s->worker, d->a, &launch);
    write_group(d, &b);
    if (restart)
        writer_i64(&b, "graceMs", grace_ms(d));
    writer_str(&b, "name", d->wg->obj.meta.name);
    writer_str(&b, "namespace", d->wg->obj.meta.ns);
    writer_str(&b, "masterAddr", master_host(d));
    writer_i64(&b, "masterPort", p ? p->master_port : s->rendezvous_port);
    writer_i64(&b, "worldSize", group_world_size(d->wg));
    writer_i64(&b, "nodes", p ? p->nodes : s->replicas);
    writer_i64(&b, "nodeRank", p ? p->replicas[index].node : index);
    writer_i64(&b, "localWorldSize", s->workers_per_replica * (p ? p->replicas[index].pod_replicas : 1));
    write_processes(d, &b, index, restart);
    write_launch(&launch, &b);
    write_gpus(d, &b, index);
    writer_str_set(&b, "workingDir", s->worker.working_dir);
    writer_object_end(&b);
    return writer_finish(&b, d->a);
}
