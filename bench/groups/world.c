// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/world.h"

#include "bench/lib/proc.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object_decode.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/workergroup.h"
#include "operator/kube/config.h"
#include "operator/reconcile/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_MS = 120 * 1000, CLEAN_S = 300 };

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench-groups: %s: %s\n", what, why);
    exit(1);
}

// --- counting

static bool of_trial(const struct world *w, const struct object *o)
{
    return w->trial.prefix[0] && str_starts(o->meta.name, w->trial.prefix);
}

static void count(int *counter, int want, int64_t *us)
{
    if (++*counter == want)
        *us = proc_now_us();
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct world *w = ctx;
    struct trial *t = &w->trial;
    if (!now && of_trial(w, old))
        count(&t->gone, t->want_pods, &t->gone_us);
    if (!now || !of_trial(w, now))
        return;
    if (!old)
        count(&t->seen, t->want_pods, &t->seen_us);
    if (pod_of(now)->phase == POD_RUNNING && (!old || pod_of(old)->phase != POD_RUNNING))
        count(&t->running, t->want_pods, &t->running_us);
}

static const struct condition *condition_of(const struct object *o, const char *type)
{
    if (o->kind == KIND_WORKERGROUP) {
        const struct workergroup_status *s = &workergroup_of(o)->status;
        return condition_find(s->conditions, s->n_conditions, type);
    }
    const struct placementgroup_status *s = &placementgroup_of(o)->status;
    return condition_find(s->conditions, s->n_conditions, type);
}

static bool is_ready(const struct object *o)
{
    const struct condition *ready = condition_of(o, "Ready");
    return ready && ready->status == CONDITION_TRUE;
}

static void on_group(void *ctx, const struct object *old, const struct object *now)
{
    struct world *w = ctx;
    if (now && of_trial(w, now) && is_ready(now) && (!old || !is_ready(old)))
        count(&w->trial.ready, w->trial.want_groups, &w->trial.ready_us);
}

void world_begin(struct world *w, const char *prefix, int pods, int groups)
{
    w->trial = (struct trial){.want_pods = pods, .want_groups = groups, .began_us = proc_now_us()};
    snprintf(w->trial.prefix, sizeof w->trial.prefix, "%s", prefix);
}

// --- waiting

void world_wait(struct world *w, const int64_t *us, int timeout_s, const char *what)
{
    int64_t end = proc_now_us() + (int64_t)timeout_s * 1000000;
    while (!*us) {
        loop_run_once(w->loop, 100);
        if (proc_now_us() > end) {
            const struct trial *t = &w->trial;
            fprintf(stderr, "bench-groups: %s: of %d pods %d came and %d run, of %d groups %d are ready\n", t->prefix,
                    t->want_pods, t->seen, t->running, t->want_groups, t->ready);
            die(what, "did not come in time");
        }
    }
}

void world_wait_answers(struct world *w)
{
    while (w->answers)
        loop_run_once(w->loop, 100);
}

void world_sleep(struct world *w, int64_t ms)
{
    for (int64_t end = proc_now_us() + ms * 1000, left; (left = end - proc_now_us()) > 0;)
        loop_run_once(w->loop, left / 1000 + 1);
}

double world_cpu_s(const struct world *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_components; i++)
        sum += proc_cpu_s(w->components[i]);
    return sum;
}

void world_quiesce(struct world *w)
{
    enum { LOOK_MS = 400, LOOKS = 50 };
    const double quiet = MAX(0.15, w->idle + 0.1); // of one CPU
    for (int i = 0; i < LOOKS; i++) {
        double before = world_cpu_s(w);
        world_sleep(w, LOOK_MS);
        double used = world_cpu_s(w) - before;
        if (used * 1000 / LOOK_MS < quiet)
            return;
    }
}

// --- loading

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct world *w = ctx;
    (void)response;
    w->answers--;
    if (err->code && err->code != ERR_NOT_FOUND) // what is deleted may be gone already
        die("a request failed", err->msg);
}

void world_send(struct world *w, const struct kube_request *r)
{
    w->answers++;
    kube_send(w->client, r, REQUEST_MS, on_answer, w);
}

static const char *group_body(const struct world *w, struct arena *a, const char *name)
{
    return arena_printf(a,
                        "{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"metadata\":{\"name\":\"%s\","
                        "\"namespace\":\"%s\"},\"spec\":{\"replicas\":%d,\"runtime\":\"Plain\","
                        "\"restartBackoff\":{\"initialSeconds\":0},\"template\":{\"spec\":{" WORLD_POD_SPEC "}}}}",
                        name, w->ns, GROUP_SIZE);
}

static const char *placementgroup_body(struct arena *a, const char *name, int bundles)
{
    return arena_printf(
        a,
        "{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"PlacementGroup\",\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"podPer\":\"Bundle\",\"bundles\":[{\"count\":%d,\"resources\":{\"cpu\":\"100m\",\"memory\":"
        "\"64Mi\",\"nvidia.com/gpu\":\"1\"}}]}}",
        name, bundles);
}

static const char *alike_body(const struct world *w, struct arena *a, const char *name, int index, const char *node)
{
    struct err err = ERR_INIT;
    struct gang_pod pod = {.index = index % GROUP_SIZE, .attempt = 1, .hash = 1, .name = name, .pin = node};
    const char *json;
    if (group_pod_render(workergroup_of(w->model), &pod, a, &json, &err) < 0)
        die("the pod of a group", err.msg);
    return json;
}

const char *world_pod_body(const struct world *w, struct arena *a, const char *name, int index, enum pod_kind kind)
{
    const char *node = w->node_names[(size_t)(index / GROUP_SIZE) % w->n_nodes];
    if (kind == POD_ALIKE)
        return alike_body(w, a, name, index, node);
    if (kind == POD_FREE)
        return arena_printf(a,
                            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":"
                            "{" WORLD_POD_SPEC ",\"restartPolicy\":\"Never\"}}",
                            name);
    return arena_printf(
        a,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":{" WORLD_POD_SPEC
        ",\"schedulerName\":\"%s\",\"restartPolicy\":\"Never\",\"affinity\":{\"nodeAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
        "\"metadata.name\",\"operator\":\"In\",\"values\":[\"%s\"]}]}]}}}}}",
        name, kind == POD_IDLE ? "nobody" : "default-scheduler", node);
}

void world_create_pods(struct world *w, const char *prefix, int n, enum pod_kind kind)
{
    struct arena a = ARENA_INIT;
    world_begin(w, prefix, n, 0);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(&a, "%s%d", prefix, i);
        world_send(w, &(struct kube_request){.verb = VERB_CREATE,
                                             .kind = KIND_POD,
                                             .ns = w->ns,
                                             .name = name,
                                             .body = world_pod_body(w, &a, name, i, kind)});
    }
    arena_done(&a);
}

void world_create_groups(struct world *w, const char *prefix, int n)
{
    struct arena a = ARENA_INIT;
    world_begin(w, prefix, n * GROUP_SIZE, n);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(&a, "%s%d", prefix, i);
        world_send(w, &(struct kube_request){.verb = VERB_CREATE,
                                             .kind = KIND_WORKERGROUP,
                                             .ns = w->ns,
                                             .name = name,
                                             .body = group_body(w, &a, name)});
    }
    arena_done(&a);
}

void world_create_placementgroups(struct world *w, const char *prefix, int n, int bundles)
{
    struct arena a = ARENA_INIT;
    world_begin(w, prefix, n * bundles, n);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(&a, "%s%d", prefix, i);
        const char *body = placementgroup_body(&a, name, bundles);
        world_send(w, &(struct kube_request){
                          .verb = VERB_CREATE, .kind = KIND_PLACEMENTGROUP, .ns = w->ns, .name = name, .body = body});
    }
    arena_done(&a);
}

void world_delete_pod(struct world *w, const char *prefix, const char *name, int pods)
{
    world_begin(w, prefix, pods, 1);
    world_send(w,
               &(struct kube_request){.verb = VERB_DELETE, .kind = KIND_POD, .ns = w->ns, .name = name, .grace_s = -1});
}

// --- cleaning

struct sweep {
    struct world *w;
    const char *prefix;
    int left;
    int64_t grace_s; // -1 = the object's own
};

static void sweep_one(void *ctx, const struct object *o)
{
    struct sweep *s = ctx;
    if (!str_starts(o->meta.name, s->prefix))
        return;
    s->left++;
    world_send(s->w,
               &(struct kube_request){
                   .verb = VERB_DELETE, .kind = o->kind, .ns = s->w->ns, .name = o->meta.name, .grace_s = s->grace_s});
}

static void sweep(struct world *w, const struct store *store, const char *prefix)
{
    int64_t end = proc_now_us() + (int64_t)CLEAN_S * 1000000;
    for (struct sweep s = {w, prefix, 1, 0}; s.left;) {
        s.left = 0;
        store_each(store, sweep_one, &s);
        world_wait_answers(w);
        if (s.left)
            world_sleep(w, 100); // the watch comes after the answers
        if (proc_now_us() > end)
            die(prefix, "its objects do not go");
    }
}

void world_delete(struct world *w, const char *prefix, int pods)
{
    struct sweep s = {w, prefix, 0, -1};
    world_begin(w, prefix, pods, 0);
    store_each(w->placementgroups, sweep_one, &s);
    store_each(w->groups, sweep_one, &s);
    if (!s.left)
        store_each(w->pods, sweep_one, &s);
}

// The groups first, or the operator would replace what goes. The garbage collector takes their Services.
void world_clean(struct world *w, const char *prefix)
{
    w->trial = (struct trial){0};
    sweep(w, w->groups, prefix);
    sweep(w, w->placementgroups, prefix);
    world_sleep(w, 200);
    sweep(w, w->pods, prefix);
    world_quiesce(w);
}

// --- life

struct names {
    const char **at;
};

static void take_name(void *ctx, const struct object *o)
{
    struct names *names = ctx;
    *names->at++ = xstrdup(o->meta.name);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp_natural(*(const char *const *)a, *(const char *const *)b);
}

static void read_nodes(struct world *w)
{
    w->n_nodes = store_count(w->nodes);
    if (!w->n_nodes)
        die("the cluster", "has no nodes");
    w->node_names = xcalloc(w->n_nodes, sizeof *w->node_names);
    store_each(w->nodes, take_name, &(struct names){w->node_names});
    qsort(w->node_names, w->n_nodes, sizeof *w->node_names, by_name);
}

// They have no UID, so that their pods name no owner: the garbage collector would take what names one that does not
// exist.
static const struct object *decode_model(enum kind kind, const char *json)
{
    const struct object *model;
    struct err err = ERR_INIT;
    if (object_decode(kind, json, strlen(json), &model, &err) < 0)
        die("an object of the benchmark", err.msg);
    return model;
}

static void read_models(struct world *w)
{
    struct arena a = ARENA_INIT;
    w->model = decode_model(KIND_WORKERGROUP, group_body(w, &a, "alike"));
    w->placementgroup_model = decode_model(KIND_PLACEMENTGROUP, placementgroup_body(&a, "alike", 1));
    arena_done(&a);
}

static void on_mirror_error(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms)
{
    (void)ctx;
    (void)retry_ms;
    fprintf(stderr, "bench-groups: watch of %s: %s\n", kind_info(kind)->plural, err->msg);
}

void world_open(struct world *w, const char *kubeconfig, const char *ns)
{
    struct err err = ERR_INIT;
    w->loop = loop_new();
    w->ns = ns;
    if (kube_config_load(kubeconfig, NULL, &w->config, &err) < 0 ||
        kube_client_new(w->loop, &w->config, &(struct kube_client_options){.user_agent = "bench-groups"}, &w->client,
                        &err) < 0)
        die("the cluster", err.msg);
    struct store **stores[] = {&w->pods, &w->groups, &w->placementgroups, &w->nodes};
    static const enum kind kinds[] = {KIND_POD, KIND_WORKERGROUP, KIND_PLACEMENTGROUP, KIND_NODE};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        *stores[i] = store_new(kinds[i]);
        w->reflectors[i] = reflector_start(
            w->loop, w->client, *stores[i],
            &(struct reflector_options){.ns = kinds[i] == KIND_NODE ? "" : ns, .on_error = on_mirror_error});
    }
    store_subscribe(w->pods, on_pod, w);
    store_subscribe(w->groups, on_group, w);
    store_subscribe(w->placementgroups, on_group, w);
    while (!store_is_complete(w->pods) || !store_is_complete(w->groups) || !store_is_complete(w->placementgroups) ||
           !store_is_complete(w->nodes))
        loop_run_once(w->loop, 100);
    read_nodes(w);
    read_models(w);
}

void world_close(struct world *w)
{
    for (size_t i = 0; i < ARRAY_LEN(w->reflectors); i++)
        reflector_stop(w->reflectors[i]);
    kube_client_free(w->client);
    store_free(w->pods);
    store_free(w->groups);
    store_free(w->placementgroups);
    store_free(w->nodes);
    for (size_t i = 0; i < w->n_nodes; i++)
        free((char *)w->node_names[i]);
    free(w->node_names);
    object_unref(w->model);
    object_unref(w->placementgroup_model);
    kube_config_done(&w->config);
    loop_free(w->loop);
}
