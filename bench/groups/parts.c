// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/parts.h"

#include "bench/groups/requests.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/endpointslice.h"
#include "operator/api/event.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_S = 300, SETTLES_MS = 1500, PODS = PARTS_GROUPS * GROUP_SIZE, KINDS_MAX = 24 };

enum {
    PART_LABELS = 1 << 0, // and annotations
    PART_NAMES = 1 << 1,  // hostname and subdomain
    PART_OWNER = 1 << 2,
    PART_GROUP = 1 << 3, // a WorkerGroup, which is created
    PART_STATUS = 1 << 4,
    PART_SERVICE = 1 << 5,
    PART_SLICE = 1 << 6,
    PART_EVENT = 1 << 7,
    PART_PODS = 1 << 8,
};

static const struct mixture {
    const char *what;
    unsigned parts;
    int variables; // of the environment, in their order; -1 = all
} mixtures[] = {
    {"bare pods", PART_PODS, 0},
    {"+ labels and annotations", PART_PODS | PART_LABELS, 0},
    {"+ host name and subdomain", PART_PODS | PART_NAMES, 0},
    {"+ owner (and the WorkerGroup itself)", PART_PODS | PART_OWNER | PART_GROUP, 0},
    {"+ 8 variables", PART_PODS, 8},
    {"+ 15 variables", PART_PODS, 15},
    {"+ all variables", PART_PODS, -1},
    {"all of these but the owner: alike", PART_PODS | PART_LABELS | PART_NAMES, -1},
    {"WorkerGroups alone", PART_GROUP, 0},
    {"WorkerGroups, status written once", PART_GROUP | PART_STATUS, 0},
    {"Services alone", PART_SERVICE, 0},
    {"EndpointSlices alone", PART_SLICE, 0},
    {"Events alone", PART_EVENT, 0},
    {"all that a group has",
     PART_PODS | PART_LABELS | PART_NAMES | PART_OWNER | PART_GROUP | PART_STATUS | PART_SERVICE | PART_SLICE |
         PART_EVENT,
     -1},
};

struct outcome_of_mixture {
    struct samples created[COMPONENTS_MAX], deleted[COMPONENTS_MAX]; // CPU seconds of a trial
    struct samples running, requests;                                // milliseconds; of all clients
};

// --- pods

static void copy(struct json_writer *w, const struct json *m)
{
    writer_key(w, m->key, m->key_len);
    writer_raw(w, NULL, m->text, m->len);
}

static void write_metadata(struct json_writer *w, const struct json *metadata, unsigned parts)
{
    writer_object(w, "metadata");
    JSON_FOREACH(m, metadata) {
        bool labels = json_key_is(m, "labels") || json_key_is(m, "annotations");
        if ((!labels || parts & PART_LABELS) && (!json_key_is(m, "ownerReferences") || parts & PART_OWNER))
            copy(w, m);
    }
    writer_object_end(w);
}

static void write_containers(struct json_writer *w, const struct json *containers, int variables)
{
    writer_list(w, "containers");
    writer_object(w, NULL);
    JSON_FOREACH(m, containers->child) {
        if (!json_key_is(m, "env")) {
            copy(w, m);
            continue;
        }
        int left = variables;
        writer_list(w, "env");
        JSON_FOREACH(item, m)
            if (left && left--)
                writer_raw(w, NULL, item->text, item->len);
        writer_list_end(w);
    }
    writer_object_end(w);
    writer_list_end(w);
}

// The pod that the operator would make, less what is not part of the mixture.
static const char *pod_body(const struct workergroup *wg, const struct mixture *x, const struct gang_pod *p,
                            struct arena *a)
{
    struct err err = ERR_INIT;
    struct json *root = NULL;
    const char *json;
    if (group_pod_render(wg, p, a, &json, &err) < 0 || json_parse(json, strlen(json), NULL, a, &root, &err) < 0) {
        fprintf(stderr, "bench-groups: the pod of a group: %s\n", err.msg);
        exit(1);
    }
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    JSON_FOREACH(m, root)
        if (!json_key_is(m, "metadata") && !json_key_is(m, "spec"))
            copy(&w, m);
    write_metadata(&w, json_get(root, "metadata"), x->parts);
    writer_object(&w, "spec");
    JSON_FOREACH(m, json_get(root, "spec"))
        if (json_key_is(m, "containers"))
            write_containers(&w, m, x->variables);
        else if ((!json_key_is(m, "hostname") && !json_key_is(m, "subdomain")) || x->parts & PART_NAMES)
            copy(&w, m);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

static void create(struct world *w, enum kind kind, const char *name, const char *body)
{
    world_send(w, &(struct kube_request){.verb = VERB_CREATE, .kind = kind, .ns = w->ns, .name = name, .body = body});
}

static void create_pods(struct world *w, const struct mixture *x, const struct workergroup *wg, int group)
{
    struct arena a = ARENA_INIT;
    for (int i = 0; i < GROUP_SIZE; i++) {
        struct gang_pod p = {.index = i, .attempt = 1, .hash = 1};
        p.name = group_pod_name(wg, i, 0, &a);
        p.pin = w->node_names[(size_t)group % w->n_nodes];
        create(w, KIND_POD, p.name, pod_body(wg, x, &p, &a));
    }
    arena_done(&a);
}

// --- what a group has besides

static void create_slice(struct world *w, const struct workergroup *wg, int group, struct arena *a)
{
    const char *name = wg->obj.meta.name;
    struct label labels[] = {
        {LABEL_GROUP, name}, {LABEL_SLICE_MANAGED_BY, SLICE_MANAGED_BY}, {LABEL_SLICE_SERVICE, name}};
    struct endpoint endpoints[GROUP_SIZE];
    for (int i = 0; i < GROUP_SIZE; i++)
        endpoints[i] = (struct endpoint){.ip = arena_printf(a, "10.0.%d.%d", group % 250, i + 1),
                                         .hostname = arena_printf(a, "%s-%d", name, i),
                                         .node = w->node_names[(size_t)group % w->n_nodes],
                                         .pod = group_pod_name(wg, i, 0, a),
                                         .uid = "01234567-89ab-cdef-0123-456789abcdef"};
    struct endpointslice_spec s = {.ns = w->ns,
                                   .name = arena_printf(a, "%s-ipv4-0", name),
                                   .labels = {labels, ARRAY_LEN(labels)},
                                   .owner = gang_manifest_owner(&wg->obj),
                                   .endpoints = endpoints,
                                   .n_endpoints = GROUP_SIZE,
                                   .port = 29500};
    create(w, KIND_ENDPOINTSLICE, s.name, endpointslice_encode(&s, a));
}

static void create_event(struct world *w, const struct workergroup *wg, struct arena *a)
{
    const struct kind_info *k = kind_info(KIND_WORKERGROUP);
    struct event e = {.ns = w->ns,
                      .name = arena_printf(a, "%s.0123456789abcdef", wg->obj.meta.name),
                      .type = "Normal",
                      .reason = "Created",
                      .action = "Create",
                      .note = "created 8 pods: attempt 1",
                      .controller = "cadre.dev/operator",
                      .instance = "bench",
                      .regarding_api_version = k->api_version,
                      .regarding_kind = k->kind,
                      .regarding_ns = w->ns,
                      .regarding_name = wg->obj.meta.name,
                      .regarding_uid = wg->obj.meta.uid,
                      .time_ms = proc_now_us() / 1000};
    create(w, KIND_EVENT, e.name, event_encode(&e, a));
}

static void write_status(struct world *w, const struct workergroup *wg, int group, struct arena *a)
{
    struct condition conditions[] = {
        {.type = "Accepted", .status = CONDITION_TRUE, .reason = "Accepted", .message = "the spec is valid"},
        {.type = "Scheduled", .status = CONDITION_TRUE, .reason = "Bound", .message = "all pods are bound"},
        {.type = "Ready", .status = CONDITION_TRUE, .reason = "Running", .message = "8 of 8 pods run"},
        {.type = "Succeeded", .status = CONDITION_FALSE, .reason = "Running", .message = ""},
        {.type = "Failed", .status = CONDITION_FALSE, .reason = "Running", .message = ""},
        {.type = "Suspended", .status = CONDITION_FALSE, .reason = "Running", .message = ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        conditions[i].observed_generation = 1;
        conditions[i].changed_ms = INT64_C(1700000000000);
    }
    struct node_ranges placements[] = {{w->node_names[(size_t)group % w->n_nodes], "0-7"}};
    struct workergroup_status s = {.observed_generation = 1,
                                   .world_size = GROUP_SIZE,
                                   .ready_workers = GROUP_SIZE,
                                   .replicas = GROUP_SIZE,
                                   .ready_replicas = GROUP_SIZE,
                                   .scheduled_replicas = GROUP_SIZE,
                                   .gpus = GROUP_SIZE,
                                   .attempt = 1,
                                   .master_addr = arena_printf(a, "%s:29500", group_master_host(wg, a)),
                                   .selector = group_selector(wg, a),
                                   .strategy = "Pack",
                                   .placements = placements,
                                   .n_placements = 1,
                                   .last_failure = {.rank = -1, .exit_code = -1},
                                   .revision = {.pods = "0123456789abcdef", .attempt = 1},
                                   .conditions = conditions,
                                   .n_conditions = ARRAY_LEN(conditions)};
    world_send(w, &(struct kube_request){.verb = VERB_PATCH_MERGE,
                                         .kind = KIND_WORKERGROUP,
                                         .ns = w->ns,
                                         .name = wg->obj.meta.name,
                                         .subresource = "status",
                                         .body = workergroup_status_patch(&s, a)});
}

// --- a trial

// A group of the trial: as the API server has it, where it has it.
static struct workergroup group_of(const struct world *w, const char *name)
{
    const struct object *o = store_get(w->groups, w->ns, name);
    struct workergroup wg = *workergroup_of(o ? o : w->model);
    wg.obj.meta.name = name;
    return wg;
}

static void create_rest(struct world *w, const struct mixture *x, const struct workergroup *wg, int group)
{
    struct arena a = ARENA_INIT;
    if (x->parts & PART_PODS)
        create_pods(w, x, wg, group);
    if (x->parts & PART_SERVICE)
        create(w, KIND_SERVICE, wg->obj.meta.name, group_service(wg, &a));
    arena_done(&a);
}

static void create_last(struct world *w, const struct mixture *x, const struct workergroup *wg, int group)
{
    struct arena a = ARENA_INIT;
    if (x->parts & PART_SLICE)
        create_slice(w, wg, group, &a);
    if (x->parts & PART_EVENT)
        create_event(w, wg, &a);
    if (x->parts & PART_STATUS)
        write_status(w, wg, group, &a);
    arena_done(&a);
}

// As an operator does it, for all groups at once: the group, its pods, what follows when they run.
static void create_all(struct world *w, const char *prefix, const struct mixture *x)
{
    struct arena a = ARENA_INIT;
    if (x->parts & PART_GROUP) {
        world_create_groups(w, prefix, PARTS_GROUPS);
        world_wait_answers(w);
        for (int i = 0; i < PARTS_GROUPS; i++) // its UID is in what it owns
            while (!store_get(w->groups, w->ns, arena_printf(&a, "%s%d", prefix, i)))
                world_sleep(w, 5);
    }
    world_begin(w, prefix, PODS, 0);
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < PARTS_GROUPS; i++) {
            struct workergroup wg = group_of(w, arena_printf(&a, "%s%d", prefix, i));
            (last ? create_last : create_rest)(w, x, &wg, i);
        }
        if (!last && x->parts & PART_PODS)
            world_wait(w, &w->trial.running_us, WAIT_S, "pods");
        world_wait_answers(w);
    }
    arena_done(&a);
}

static void delete_all(struct world *w, const char *prefix, const struct mixture *x)
{
    struct arena a = ARENA_INIT;
    world_delete(w, prefix, PODS);
    if (x->parts & (PART_SERVICE | PART_SLICE) && !(x->parts & PART_GROUP))
        for (int i = 0; i < PARTS_GROUPS; i++) {
            bool service = x->parts & PART_SERVICE;
            const char *name = arena_printf(&a, service ? "%s%d" : "%s%d-ipv4-0", prefix, i);
            world_send(w, &(struct kube_request){.verb = VERB_DELETE,
                                                 .kind = service ? KIND_SERVICE : KIND_ENDPOINTSLICE,
                                                 .ns = w->ns,
                                                 .name = name,
                                                 .grace_s = -1});
        }
    if (x->parts & PART_PODS)
        world_wait(w, &w->trial.gone_us, WAIT_S, "the end of pods");
    world_wait_answers(w);
    arena_done(&a);
}

static void trial(struct bench *b, const struct mixture *x, struct outcome_of_mixture *o)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    struct requests before = {0}, after = {0};
    struct meter m;
    bench_prefix(b, prefix, sizeof prefix, "parts");
    requests_take(w, &before);
    meter_begin(b, &m);
    create_all(w, prefix, x);
    int64_t running_us = w->trial.running_us - w->trial.began_us;
    world_sleep(w, SETTLES_MS);
    meter_end(b, &m, o->created);
    requests_take(w, &after);
    samples_add(&o->requests, (requests_total(&after) - requests_total(&before)) / PARTS_GROUPS);
    if (x->parts & PART_PODS)
        samples_add(&o->running, (double)running_us / 1e3);
    meter_begin(b, &m);
    delete_all(w, prefix, x);
    world_sleep(w, SETTLES_MS);
    meter_end(b, &m, o->deleted);
    world_clean(w, prefix);
    size_t last = o->requests.n - 1;
    double created = 0;
    for (size_t i = 0; i < w->n_components; i++)
        created += o->created[i].values[last];
    fprintf(stderr, "bench-groups: %s: %.2f s of CPU (load %.1f)\n", x->what, created, proc_load());
}

// --- the table

static double all_of(const struct bench *b, const struct samples *cpu)
{
    double sum = 0;
    for (size_t i = 0; i < b->world.n_components; i++)
        sum += samples_median(&cpu[i]);
    return sum;
}

static void report(const struct bench *b, int rounds, const struct outcome_of_mixture *outcomes)
{
    const struct world *w = &b->world;
    double floor_value = all_of(b, outcomes[0].created);
    char name[32];
    printf("CPU-milliseconds for %d pods, or for what one group has; %d groups at once, medians of %d rounds\n",
           GROUP_SIZE, PARTS_GROUPS, rounds);
    printf("| %-36s | %7s | %7s | %5s", "created", "all run", "all", "ratio");
    for (size_t i = 0; i < w->n_components; i++)
        printf(" | %.10s", proc_name(w->components[i], name, sizeof name));
    printf(" | requests | deleted |\n");
    for (size_t i = 0; i < ARRAY_LEN(mixtures); i++) {
        const struct outcome_of_mixture *o = &outcomes[i];
        double all = all_of(b, o->created);
        printf("| %-36s | %7.0f | %7.1f | %5.2f", mixtures[i].what, samples_median(&o->running),
               all * 1e3 / PARTS_GROUPS, all / floor_value);
        for (size_t k = 0; k < w->n_components; k++)
            printf(" | %10.1f", samples_median(&o->created[k]) * 1e3 / PARTS_GROUPS);
        printf(" | %8.1f | %7.1f |\n", samples_median(&o->requests), all_of(b, o->deleted) * 1e3 / PARTS_GROUPS);
    }
    fflush(stdout);
}

void parts_run(struct bench *b, int rounds)
{
    struct outcome_of_mixture *outcomes = xcalloc(ARRAY_LEN(mixtures), sizeof *outcomes);
    for (int i = 0; i < rounds; i++) {
        for (size_t k = 0; k < ARRAY_LEN(mixtures); k++)
            trial(b, &mixtures[k], &outcomes[k]);
        report(b, i + 1, outcomes);
    }
    free(outcomes);
}
