// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/floor.h"

#include "bench/groups/requests.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/group_reconcile.h"
#include "operator/reconcile/reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_S = 300, CA_BYTES = 600, CA_LINE = 65 };

enum {
    HAS_PODS = 1 << 0,
    HAS_OBJECTS = 1 << 1,  // PlacementGroups
    HAS_STATUS = 1 << 2,   // written once: when the pod runs, where there is one
    LIKE_OURS = 1 << 3,    // the pods that the operator makes
    DELETES_PODS = 1 << 4, // as their PlacementGroup goes, as the operator does; else the garbage collector alone
};

static const struct mixture {
    const char *what;
    unsigned has;
} mixtures[] = {
    {"bare pods", HAS_PODS},
    {"the operator's pods, without an owner", HAS_PODS | LIKE_OURS},
    {"PlacementGroups alone", HAS_OBJECTS},
    {"PlacementGroups, status written once", HAS_OBJECTS | HAS_STATUS},
    {"PlacementGroups and their pods", HAS_OBJECTS | HAS_PODS | LIKE_OURS | DELETES_PODS},
    {"all of it: with one status", HAS_OBJECTS | HAS_PODS | LIKE_OURS | HAS_STATUS | DELETES_PODS},
    {"... pods left to the garbage collector", HAS_OBJECTS | HAS_PODS | LIKE_OURS | HAS_STATUS},
};

struct outcome_of_mixture {                      // a value a trial
    struct samples created, deleted, both;       // milliseconds
    struct samples cpu[COMPONENTS_MAX], all_cpu; // seconds
    struct samples requests;                     // of all clients, each
};

struct floor {
    struct world *w;
    const struct mixture *now; // NULL: what is seen is of no trial
    struct agent_setup setup;
    char ca[CA_BYTES + 1];
};

// --- what the operator would send

static void ask(struct floor *f, enum verb verb, enum kind kind, const char *name, const char *subresource,
                const char *body)
{
    world_send(f->w, &(struct kube_request){.verb = verb,
                                            .kind = kind,
                                            .ns = f->w->ns,
                                            .name = name,
                                            .subresource = subresource,
                                            .body = body,
                                            .grace_s = -1});
}

static const char *node_of_group(const struct floor *f, int group)
{
    return f->w->node_names[(size_t)(group / GROUP_SIZE) % f->w->n_nodes];
}

static void create_pod(struct floor *f, const struct placementgroup *plg, int group)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct bundles bundles;
    static const int32_t first = 0;
    struct bundlepod pod = {.pod.name = bundlepod_name(plg, 0, 0, &a),
                            .pod.pin = node_of_group(f, group),
                            .pod.hash = 1,
                            .items = &first,
                            .n = 1,
                            .pod.setup = &f->setup};
    const char *json;
    if (bundles_expand(&plg->spec, &a, &bundles, &err) < 0 ||
        bundlepod_render(plg, &bundles, &pod, &a, &json, &err) < 0) {
        fprintf(stderr, "bench-groups: the pod of a PlacementGroup: %s\n", err.msg);
        exit(1);
    }
    ask(f, VERB_CREATE, KIND_POD, pod.pod.name, NULL, json);
    arena_done(&a);
}

static void write_status(struct floor *f, const struct placementgroup *plg, int group)
{
    struct arena a = ARENA_INIT;
    struct condition conditions[] = {
        {.type = COND_ACCEPTED, .status = CONDITION_TRUE, .reason = REASON_VALID, .message = ""},
        {.type = COND_SCHEDULED,
         .status = CONDITION_TRUE,
         .reason = REASON_BOUND,
         .message = "all 1 bundles are bound, on 1 pod"},
        {.type = COND_READY, .status = CONDITION_TRUE, .reason = REASON_RUNNING, .message = "all 1 bundles are ready"},
        {.type = COND_FAILED, .status = CONDITION_FALSE, .reason = REASON_NO_FAILURE, .message = ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        conditions[i].observed_generation = 1;
        conditions[i].changed_ms = INT64_C(1700000000000);
    }
    struct node_ranges placement = {node_of_group(f, group), "0"};
    struct placementgroup_status s = {.observed_generation = 1,
                                      .bundles = 1,
                                      .bound_bundles = 1,
                                      .gpus = 1,
                                      .nodes = 1,
                                      .placements = &placement,
                                      .n_placements = 1,
                                      .conditions = conditions,
                                      .n_conditions = ARRAY_LEN(conditions)};
    ask(f, VERB_PATCH_MERGE, KIND_PLACEMENTGROUP, plg->obj.meta.name, "status", placementgroup_status_patch(&s, &a));
    arena_done(&a);
}

// --- what it would do about what it sees

// The number of a PlacementGroup of the trial; -1: it is of no trial.
static int group_of(const struct floor *f, const char *name)
{
    const char *prefix = f->w->trial.prefix;
    int64_t n;
    bool ours = f->now && prefix[0] && str_starts(name, prefix) && str_to_i64(name + strlen(prefix), &n);
    return ours ? (int)n : -1;
}

static void on_placementgroup(void *ctx, const struct object *old, const struct object *now)
{
    struct floor *f = ctx;
    int group = group_of(f, (now ? now : old)->meta.name);
    if (group < 0)
        return;
    unsigned has = f->now->has;
    if (!old && has & HAS_PODS)
        create_pod(f, placementgroup_of(now), group);
    else if (!old && has & HAS_STATUS)
        write_status(f, placementgroup_of(now), group);
    if (!now && has & DELETES_PODS) {
        struct arena a = ARENA_INIT;
        ask(f, VERB_DELETE, KIND_POD, bundlepod_name(placementgroup_of(old), 0, 0, &a), NULL, NULL);
        arena_done(&a);
    }
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct floor *f = ctx;
    if (!f->now || !(f->now->has & HAS_STATUS) || !now || pod_of(now)->phase != POD_RUNNING ||
        (old && pod_of(old)->phase == POD_RUNNING))
        return;
    const struct object *plg = store_get(f->w->placementgroups, f->w->ns, now->meta.owner.name);
    int group = plg ? group_of(f, plg->meta.name) : -1;
    if (group >= 0)
        write_status(f, placementgroup_of(plg), group);
}

// --- a trial

// Pods like a PlacementGroup's pods, without a PlacementGroup.
static void create_pods_alike(struct floor *f, const char *prefix)
{
    struct arena a = ARENA_INIT;
    world_begin(f->w, prefix, FLOOR_GROUPS, 0);
    for (int i = 0; i < FLOOR_GROUPS; i++) {
        struct placementgroup plg = *placementgroup_of(f->w->placementgroup_model);
        plg.obj.meta.ns = f->w->ns;
        plg.obj.meta.name = arena_printf(&a, "%s%d", prefix, i);
        create_pod(f, &plg, i);
    }
    arena_done(&a);
}

static double created_ms(struct floor *f, const char *prefix)
{
    struct world *w = f->w;
    unsigned has = f->now->has;
    if (has & HAS_OBJECTS)
        world_create_placementgroups(w, prefix, FLOOR_GROUPS, 1);
    else if (has & LIKE_OURS)
        create_pods_alike(f, prefix);
    else
        world_create_pods(w, prefix, FLOOR_GROUPS, POD_BARE);
    if (has & HAS_PODS)
        world_wait(w, &w->trial.running_us, WAIT_S, "pods");
    if (has & HAS_STATUS)
        world_wait(w, &w->trial.ready_us, WAIT_S, "statuses");
    if (has == HAS_OBJECTS)
        world_wait_answers(w);
    return (double)(proc_now_us() - w->trial.began_us) / 1e3;
}

static double deleted_ms(struct floor *f, const char *prefix)
{
    struct world *w = f->w;
    world_delete(w, prefix, FLOOR_GROUPS);
    if (f->now->has & HAS_PODS)
        world_wait(w, &w->trial.gone_us, WAIT_S, "the end of pods");
    else
        world_wait_answers(w);
    return (double)(proc_now_us() - w->trial.began_us) / 1e3;
}

static void trial(struct bench *b, struct floor *f, struct outcome_of_mixture *o)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    struct requests before = {0}, after = {0};
    struct meter m;
    bench_prefix(b, prefix, sizeof prefix, "floor");
    requests_take(w, &before);
    meter_begin(b, &m);
    double created = created_ms(f, prefix), deleted = deleted_ms(f, prefix);
    world_wait_answers(w);
    world_quiesce(w);
    meter_end(b, &m, o->cpu);
    requests_take(w, &after);
    samples_add(&o->created, created);
    samples_add(&o->deleted, deleted);
    samples_add(&o->both, created + deleted);
    samples_add(&o->requests, (requests_total(&after) - requests_total(&before)) / FLOOR_GROUPS);
    double all = 0;
    for (size_t i = 0; i < w->n_components; i++)
        all += o->cpu[i].values[o->both.n - 1];
    samples_add(&o->all_cpu, all);
    fprintf(stderr, "bench-groups: %s: %.0f + %.0f ms, %.2f s of CPU (load %.1f)\n", f->now->what, created, deleted,
            all, proc_load());
    f->now = NULL;
    world_clean(w, prefix);
}

// --- the table

static double ratio(const struct samples *of, const struct samples *to)
{
    struct samples ratios = {0};
    samples_ratios(of, to, &ratios);
    return samples_median(&ratios);
}

static void report(const struct bench *b, int rounds, const struct outcome_of_mixture *outcomes)
{
    const struct world *w = &b->world;
    char name[32];
    printf("%d at once, created and deleted: milliseconds of all, CPU-milliseconds and requests of each; medians of %d "
           "rounds, and of their ratios to bare pods\n",
           FLOOR_GROUPS, rounds);
    printf("| %-38s | %7s | %7s | %5s | %5s | %5s | %5s", "", "created", "deleted", "both", "ratio", "CPU", "ratio");
    for (size_t i = 0; i < w->n_components; i++)
        printf(" | %.10s", proc_name(w->components[i], name, sizeof name));
    printf(" | requests |\n");
    for (size_t i = 0; i < ARRAY_LEN(mixtures); i++) {
        const struct outcome_of_mixture *o = &outcomes[i];
        printf("| %-38s | %7.0f | %7.0f | %5.0f | %5.2f | %5.1f | %5.2f", mixtures[i].what, samples_median(&o->created),
               samples_median(&o->deleted), samples_median(&o->both), ratio(&o->both, &outcomes[0].both),
               samples_median(&o->all_cpu) * 1e3 / FLOOR_GROUPS, ratio(&o->all_cpu, &outcomes[0].all_cpu));
        for (size_t k = 0; k < w->n_components; k++)
            printf(" | %10.1f", samples_median(&o->cpu[k]) * 1e3 / FLOOR_GROUPS);
        printf(" | %8.1f |\n", samples_median(&o->requests));
    }
    fflush(stdout);
}

// The values that the operator gives to the agents, as long as in an installation.
static void prepare(struct floor *f, struct world *w)
{
    f->w = w;
    for (int i = 0; i < CA_BYTES; i++)
        f->ca[i] = i % CA_LINE == CA_LINE - 1 ? '\n' : 'A';
    f->setup = (struct agent_setup){
        .image = "cadre/operator:0.1.0", .url = "wss://cadre-operator.cadre-system.svc:9443", .ca_pem = f->ca};
    store_subscribe(w->placementgroups, on_placementgroup, f);
    store_subscribe(w->pods, on_pod, f);
}

void floor_run(struct bench *b, int rounds)
{
    struct outcome_of_mixture *outcomes = xcalloc(ARRAY_LEN(mixtures), sizeof *outcomes);
    struct floor f = {0};
    prepare(&f, &b->world);
    for (int i = 0; i < rounds; i++) {
        for (size_t k = 0; k < ARRAY_LEN(mixtures); k++) {
            f.now = &mixtures[k];
            trial(b, &f, &outcomes[k]);
        }
        report(b, i + 1, outcomes);
    }
    free(outcomes);
}
