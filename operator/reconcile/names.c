// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/names.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/podagent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The user may set some of the workers' variables.
const char *const reserved_env[] = {
    "!CADRE_ARCHIVES",
    "!CADRE_ARCHIVE_WAIT",
    "!CADRE_CALL_BYTES",
    "!CADRE_COLLECTIVE_DEBUG",
    "!CADRE_COLLECTIVE_LIMIT_MS",
    "!CADRE_PACKAGE",
    "!CADRE_STORE_BYTES",
    "!CADRE_REFERENCE_BYTES",
    "!CADRE_OBJECTS_PORT",
    "!CADRE_SILENCE_SECONDS",
    "!CADRE_TRANSFER_DIRECT",
    "!CADRE_TRANSFER_NCCL",
    "!CADRE_TRANSFER_SWAP",
    "!CADRE_TRUST_CALLERS",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "NNODES",
    "GROUP_NAME",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",
    "CADRE_*",
    NULL,
};

int32_t group_world_size(const struct workergroup *wg)
{
    return wg->spec.replicas * wg->spec.workers_per_replica;
}

const char *group_master_host(const struct workergroup *wg, struct arena *a)
{
    const struct meta *m = &wg->obj.meta;
    return arena_printf(a, "%s-0.%s.%s.svc", m->name, m->name, m->ns);
}

const char *group_selector(const struct workergroup *wg, struct arena *a)
{
    return arena_printf(a, LABEL_GROUP "=%s", wg->obj.meta.name);
}

const char *group_pod_name(const struct workergroup *wg, int32_t index, int32_t incarnation, struct arena *a)
{
    return gang_manifest_pod_name(wg->obj.meta.name, index, incarnation, a);
}

const char *group_service(const struct workergroup *wg, struct arena *a)
{
    return gang_manifest_service(&wg->obj, wg->obj.meta.name, false, wg->spec.rendezvous_port, a);
}

// Everything that the processes are made from, as a text to compare.
static const char *worker_text(const struct worker_spec *s, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str_set(&w, "module", s->module);
    writer_str_set(&w, "python", s->python);
    if (s->n_preload)
        writer_strs(&w, "preload", s->preload, s->n_preload);
    writer_str_set(&w, "code", s->code_sha256);
    writer_str_set(&w, "archive", s->archive_sha256);
    writer_str_set(&w, "class", s->class_name);
    writer_str_set(&w, "init", s->init_json);
    writer_str_set(&w, "roles", s->roles_json);
    writer_strs(&w, "command", s->command, s->n_command);
    writer_strs(&w, "args", s->args, s->n_args);
    writer_str_set(&w, "workingDir", s->working_dir);
    writer_str_set(&w, "restartedAt", s->restarted_at);
    writer_i64(&w, "gpus", s->gpus);
    writer_i64(&w, "gpuVisibility", s->gpu_visibility);
    writer_list(&w, "env");
    for (size_t i = 0; i < s->n_env; i++) {
        writer_str(&w, NULL, s->env[i].name);
        writer_str(&w, NULL, s->env[i].value);
        writer_str(&w, NULL, s->env[i].value_from);
    }
    writer_list_end(&w);
    writer_list(&w, "meshes");
    for (size_t i = 0; i < s->n_meshes; i++) {
        writer_str(&w, NULL, s->meshes[i].name);
        for (size_t k = 0; k < s->meshes[i].n_dims; k++) {
            writer_str(&w, NULL, s->meshes[i].dims[k].name);
            writer_i64(&w, NULL, s->meshes[i].dims[k].size);
        }
    }
    writer_list_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

// The part of the worker that is in the pod itself (podagent.c): whether its command is the container's, and the
// variables whose values the kubelet looks up.
static const char *container_text(const struct worker_spec *s, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_bool(&w, "bringsCommand", s->module || s->python || s->n_command);
    writer_list(&w, "env");
    for (size_t i = 0; i < s->n_env; i++) {
        if (!s->env[i].value_from)
            continue;
        writer_str(&w, NULL, s->env[i].name);
        writer_str(&w, NULL, s->env[i].value_from);
    }
    writer_list_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

uint64_t group_worker_hash(const struct workergroup *wg)
{
    if (wg->spec.runtime != RUNTIME_AGENT)
        return 0;
    struct arena a = ARENA_INIT;
    const char *text = worker_text(&wg->spec.worker, &a);
    uint64_t hash = str_hash(text, strlen(text));
    arena_done(&a);
    return hash;
}

const char *group_hash_text(uint64_t hash, struct arena *a)
{
    return arena_printf(a, "%016" PRIx64, hash);
}

uint64_t group_spec_hash(const struct workergroup *wg, uint64_t template_hash)
{
    const struct workergroup_spec *s = &wg->spec;
    struct arena a = ARENA_INIT;
    const char *text =
        arena_printf(&a, "%016" PRIx64 " %d %d %d %d %s", template_hash, s->replicas, s->workers_per_replica,
                     s->rendezvous_port, (int)s->gang.strategy, s->gang.topology_key);
    if (s->runtime == RUNTIME_AGENT)
        text = arena_printf(&a, "%s Agent %s", text, container_text(&s->worker, &a));
    for (size_t i = 0; i < s->n_placement_groups; i++)
        text = arena_printf(&a, "%s %s:%s", text, s->placement_groups[i].name,
                            s->placement_groups[i].bundles ? s->placement_groups[i].bundles : "");
    uint64_t hash = str_hash(text, strlen(text));
    arena_done(&a);
    return hash;
}

// The rendezvous as torchrun and plain launchers expect it. With the Plain runtime a pod is one "node" of torchrun, and
// RANK is the first global rank in it.
static size_t group_env(const struct workergroup *wg, const struct gang_pod *p, struct arena *a,
                        const struct env_var **ret)
{
    const char *host = group_master_host(wg, a);
    const char *port = arena_printf(a, "%d", wg->spec.rendezvous_port);
    const char *index = arena_printf(a, "%d", p->index);
    const char *replicas = arena_printf(a, "%d", wg->spec.replicas);
    const char *local = arena_printf(a, "%d", wg->spec.workers_per_replica);
    const struct env_var env[] = {
        {"MASTER_ADDR", host},
        {"MASTER_PORT", port},
        {"WORLD_SIZE", arena_printf(a, "%d", group_world_size(wg))},
        {"RANK", arena_printf(a, "%d", p->index * wg->spec.workers_per_replica)},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", local},
        {"NODE_RANK", index},
        {"GROUP_RANK", index},
        {"NNODES", replicas},
        {"GROUP_NAME", wg->obj.meta.name},
        {"PET_MASTER_ADDR", host},
        {"PET_MASTER_PORT", port},
        {"PET_NNODES", replicas},
        {"PET_NODE_RANK", index},
        {"PET_NPROC_PER_NODE", local},
        {"CADRE_GROUP_UID", wg->obj.meta.uid},
        {"CADRE_NAMESPACE", wg->obj.meta.ns},
        {"CADRE_INDEX", index},
        {"CADRE_ATTEMPT", arena_printf(a, "%d", p->attempt)},
        {"CADRE_DEVICE", "0"},
    };
    *ret = arena_memdup(a, env, sizeof env);
    return ARRAY_LEN(env);
}

static int render(const struct workergroup *wg, const struct gang_pod *p, struct arena *a, const char **ret_json,
                  struct err *err)
{
    const struct worker_spec *worker = &wg->spec.worker;
    struct label annotations[] = {{ANNOTATION_SPEC_HASH, group_hash_text(p->hash, a)}};
    struct pod_render r = gang_manifest_pod(&wg->obj, wg->obj.meta.name, p, a);
    struct pod_agent agent = {
        .brings_command = worker->module || worker->python || worker->n_command,
        .env = worker->env,
        .n_env = worker->n_env,
    };
    r.annotations = (struct labels){annotations, ARRAY_LEN(annotations)};
    if (p->setup) {
        gang_manifest_agent(p->setup, &agent);
        r.agent = &agent;
    }
    r.n_env = group_env(wg, p, a, &r.env);
    return pod_render(wg->spec.template_json, &r, a, ret_json, err);
}

int group_pod_render(const struct workergroup *wg, const struct gang_pod *p, struct arena *a, const char **ret_json,
                     struct err *err)
{
    struct arena scratch = ARENA_INIT; // the parsed template is larger than the pod, and each pod parses it again
    const char *json;
    int r = render(wg, p, &scratch, &json, err);
    if (r == 0)
        *ret_json = arena_strdup(a, json);
    arena_done(&scratch);
    return r;
}
