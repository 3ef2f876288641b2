// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/placement_simulation.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/room.h"
#include "operator/reconcile/gang_place.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/operator/reconcile/placement_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_accounting(struct sim *s)
{
    struct load real[NODES_MAX];
    sim_loads(s, true, INT32_MIN, real);
    for (int i = 0; i < s->n_nodes; i++) {
        const struct room *r = cluster_room(s->cluster, s->nodes[i].name);
        if (s->nodes[i].up &&
            (room_used(r, RESOURCE_GPU) != real[i].gpus * 1000 || room_used(r, RESOURCE_CPU) != real[i].cpus * 1000))
            sim_fail(s, "%s is accounted with %" PRId64 " thousandths of GPUs, but has %d in use", r->name,
                     room_used(r, RESOURCE_GPU), real[i].gpus);
    }
}

static void check_gangs(struct sim *s)
{
    for (int i = 0; i < GANGS_MAX; i++) {
        const struct sgang *g = &s->gangs[i];
        int pods = 0, ending = 0;
        for (int k = 0; g->state != GANG_NONE && k < g->n; k++) {
            pods += g->pods[k].state != POD_NONE;
            ending += g->pods[k].state == POD_ENDING;
        }
        if (pods && pods < g->n && !ending)
            sim_fail(s, "%s has %d of %d pods", g->name, pods, g->n);
        if (g->state == GANG_WAITING && pods > ending)
            sim_fail(s, "%s waits, and has pods", g->name);
    }
}

// Gangs

static void waits_from_now_on(struct sim *s, struct sgang *g)
{
    g->state = GANG_WAITING;
    g->version++;
    g->waiting_ms = 0;
    g->again_ms = s->now_ms;
}

// All pods of the gang go. Running pods go after their grace period.
static void give_up_pods(struct sim *s, struct sgang *g)
{
    for (int k = 0; k < g->n; k++)
        sim_pod_gone(s, &g->pods[k]);
}

static void gang_ends(struct sim *s, struct sgang *g)
{
    give_up_pods(s, g);
    line_leave(s->line, g->name);
    g->state = GANG_NONE;
    g->version++;
}

static void give_back(struct sim *s, struct sgang *g)
{
    g->n_contended = 0;
    for (int k = 0; k < g->n; k++)
        if (g->pods[k].state == POD_PINNED)
            g->contended[g->n_contended++] = s->nodes[g->pods[k].node].name;
    give_up_pods(s, g);
    g->state = GANG_BACKOFF;
    g->version++;
    int shift = MIN(g->backoffs++, 6);
    sim_after(s, ((int64_t)SECOND << shift) + sim_up_to(s, SECOND), AGAIN, (int)(g - s->gangs), g->version);
    s->report->given_back++;
    line_leave(s->line, g->name);
}

static int node_number(const struct sim *s, const char *name)
{
    for (int i = 0; i < s->n_nodes; i++)
        if (str_eq(s->nodes[i].name, name))
            return i;
    return -1;
}

static void check_placed(struct sim *s, const struct sgang *g, const struct gang *gang, const struct placement *p)
{
    struct load there[NODES_MAX];
    int domains[NODES_MAX] = {0}, used = 0, most = 0;
    sim_loads(s, true, p->n_victims ? g->needs.priority : INT32_MIN, there);
    for (int k = 0; k < g->n; k++) {
        int i = node_number(s, p->nodes[k]);
        if (i < 0 || !s->nodes[i].up) {
            sim_fail(s, "%s is placed on %s, which is not there", g->name, p->nodes[k]);
            return;
        }
        const struct spod pod = {.gpus = (int)(resources_get(&g->needs.requests, RESOURCE_GPU) / 1000),
                                 .cpus = (int)(resources_get(&g->needs.requests, RESOURCE_CPU) / 1000)};
        int domain = g->by_rack ? i / RACK : i;
        used += domains[domain]++ == 0;
        most = MAX(most, domains[domain]);
        for (size_t h = 0; h < gang->n_held; h++)
            if (str_eq(gang->held[h], p->nodes[k]) && !gang->bundles[k].fixed_node)
                sim_fail(s, "%s is placed on %s, which is held for others", g->name, p->nodes[k]);
        if (gang->bundles[k].fixed_node)
            continue; // counted already
        if (!sim_fits(&there[i], &pod))
            sim_fail(s, "%s is placed on %s, which has no room", g->name, p->nodes[k]);
        else
            there[i] = (struct load){there[i].gpus + pod.gpus, there[i].cpus + pod.cpus};
    }
    if ((g->strategy == STRATEGY_STRICT_PACK && used > 1) || (g->strategy == STRATEGY_STRICT_SPREAD && most > 1))
        sim_fail(s, "%s is placed against its strategy", g->name);
}

static void create(struct sim *s, struct sgang *g, const struct placement *p)
{
    int until = g->n;
    if (s->dies)
        until = sim_up_to(s, g->n);
    s->dead = s->dies;
    g->incarnation += g->state == GANG_WAITING;
    for (int k = 0; k < until; k++) {
        struct spod *pod = &g->pods[k];
        if (pod->state != POD_NONE)
            continue;
        *pod = (struct spod){.state = POD_PINNED,
                             .node = node_number(s, p->nodes[k]),
                             .gpus = (int)(resources_get(&g->needs.requests, RESOURCE_GPU) / 1000),
                             .cpus = (int)(resources_get(&g->needs.requests, RESOURCE_CPU) / 1000),
                             .priority = g->needs.priority,
                             .gang = g};
        snprintf(pod->name, sizeof pod->name, "%s-%d-%d", g->name, k, g->incarnation);
        sim_show(s, pod);
    }
    g->state = GANG_BINDING;
    g->version++;
    g->seen = false;
    sim_after(s, 1 + sim_up_to(s, 20 * SECOND), SCHEDULER, (int)(g - s->gangs), g->version);
    sim_after(s, BIND_TIMEOUT, UNBOUND, (int)(g - s->gangs), g->version);
}

static void note_wait(struct sim *s, const struct sgang *g)
{
    struct simulation_report *r = s->report;
    int64_t ms = s->now_ms - g->first_wait_ms;
    bool small = resources_get(&g->needs.requests, RESOURCE_GPU) / 1000 * g->n <= s->n_nodes * GPUS / 4;
    r->longest_wait_ms = MAX(r->longest_wait_ms, ms);
    if (small)
        r->longest_wait_of_small_ms = MAX(r->longest_wait_of_small_ms, ms);
}

static void decide(struct sim *s, struct sgang *g)
{
    struct arena a = ARENA_INIT;
    struct bundle bundles[GANG_PODS];
    bool resumes = false;
    if (s->dead)
        return;
    for (int k = 0; k < g->n; k++) {
        bool there = g->pods[k].state != POD_NONE;
        bundles[k] = (struct bundle){&g->needs, there ? s->nodes[g->pods[k].node].name : NULL};
        resumes |= there;
    }
    struct gang gang = {.strategy = g->strategy,
                        .topology_key = g->by_rack ? "rack" : NULL,
                        .bundles = bundles,
                        .n_bundles = (size_t)g->n,
                        .avoid = g->contended,
                        .n_avoid = g->n_contended};
    struct condition waits = {COND_SCHEDULED, CONDITION_FALSE, REASON_INSUFFICIENT, "", g->waiting_ms, 1};
    struct gang_place_request r = {.cluster = s->cluster,
                                   .line = s->line,
                                   .owner = &g->object,
                                   .scheduled = g->waiting_ms ? &waits : NULL,
                                   .resumes = resumes,
                                   .now_ms = s->now_ms};
    struct placement placed;
    struct plan plan;
    plan_init(&plan, &a);
    gang_place(&r, &gang, &a, &plan, &placed);
    s->report->decisions++;
    s->report->holds += plan.line->n_hold > 0;
    int64_t again_ms = plan.requeue_ms < 0 ? 0 : s->now_ms + MAX(plan.requeue_ms, (int64_t)1);
    if (placed.verdict == VERDICT_PLACED) {
        check_placed(s, g, &gang, &placed);
        line_tell(s->line, plan.line, s->now_ms);
        note_wait(s, g);
        create(s, g, &placed);
    } else if (resumes) {
        give_back(s, g);
    } else {
        if (!g->waiting_ms)
            g->waiting_ms = s->now_ms;
        if (placed.verdict == VERDICT_INFEASIBLE && !g->hopeless) // it turns out to be infeasible at some time
            sim_after(s, (int64_t)(1 + sim_up_to(s, 120)) * MINUTE, DELETED, (int)(g - s->gangs), g->uid);
        g->hopeless |= placed.verdict == VERDICT_INFEASIBLE;
        line_tell(s->line, plan.line, s->now_ms);
    }
    g->again_ms = again_ms;
    arena_done(&a);
}

// Decides about all waiting gangs, in their order.
static void wake(struct sim *s)
{
    int order[GANGS_MAX], n = 0;
    s->epoch = cluster_epoch(s->cluster);
    for (size_t i = 0; i < line_length(s->line); i++)
        order[n++] = (int)(line_at(s->line, i)->created_ms % GANGS_MAX);
    for (int i = 0; i < n; i++)
        if (s->gangs[order[i]].state == GANG_WAITING)
            decide(s, &s->gangs[order[i]]);
}

static void arrive(struct sim *s)
{
    static const enum strategy strategies[] = {STRATEGY_PACK, STRATEGY_SPREAD, STRATEGY_STRICT_PACK,
                                               STRATEGY_STRICT_SPREAD};
    int i = 0;
    while (i < GANGS_MAX && s->gangs[i].state != GANG_NONE)
        i++;
    if (i == GANGS_MAX)
        return;
    struct sgang *g = &s->gangs[i];
    uint32_t version = g->version + 1;
    *g = (struct sgang){.version = version};
    snprintf(g->name, sizeof g->name, "g%" PRId64, ++s->serial);
    int gpus = sim_one_in(s, 6) ? 0 : sim_one_in(s, 3) ? 1 << sim_up_to(s, 3) : 1;
    g->n = sim_one_in(s, 4) ? 1 + sim_up_to(s, GANG_PODS - 1) : 1 + sim_up_to(s, 7);
    if (g->n * gpus > s->n_nodes * GPUS / 2 && !sim_one_in(s, 20))
        gpus = 1;
    g->strategy = strategies[sim_up_to(s, 3)];
    g->by_rack = sim_one_in(s, 3);
    g->requests[0] = (struct resource){RESOURCE_CPU, (1 + sim_up_to(s, 3)) * 1000};
    g->requests[1] = (struct resource){RESOURCE_PODS, 1000};
    g->requests[2] = (struct resource){RESOURCE_GPU, gpus * 1000};
    g->needs = (struct pod_constraints){.requests = {g->requests, gpus ? 3 : 2}, .preempts = !sim_one_in(s, 4)};
    g->needs.priority = sim_one_in(s, 8) ? 10 : sim_one_in(s, 4) ? 5 : 0;
    // The uid is unique, follows the order of arrival, and contains the gang's index.
    g->object =
        (struct object){.kind = KIND_WORKERGROUP,
                        .meta = {.name = g->name, .ns = "ml", .uid = g->name, .created_ms = s->serial * GANGS_MAX + i}};
    g->length_ms =
        sim_one_in(s, 10) ? (int64_t)(1 + sim_up_to(s, 11)) * HOUR : (int64_t)(1 + sim_up_to(s, 59)) * MINUTE;
    s->report->gangs++;
    g->uid = (uint32_t)s->serial;
    if (sim_one_in(s, 10))
        sim_after(s, (int64_t)(1 + sim_up_to(s, 300)) * MINUTE, DELETED, i, g->uid);
    g->first_wait_ms = s->now_ms;
    waits_from_now_on(s, g);
    decide(s, g);
}

// An evicted gang, or one that loses a node, begins again and keeps its place in the line.
static void evict_gang(struct sim *s, struct sgang *g)
{
    if (g->state != GANG_RUNNING && g->state != GANG_BINDING)
        return;
    give_up_pods(s, g);
    g->first_wait_ms = s->now_ms;
    waits_from_now_on(s, g);
}

// Other people's pods

static void other_comes(struct sim *s)
{
    struct load there[NODES_MAX];
    int i = 0, from = sim_up_to(s, s->n_nodes - 1);
    while (i < OTHERS_MAX && s->others[i].state != POD_NONE)
        i++;
    if (i == OTHERS_MAX)
        return;
    // Sometimes a pod of other people comes before kube-scheduler has seen the pods that are pinned there.
    sim_loads(s, !sim_one_in(s, 5), INT32_MIN, there);
    struct spod p = {
        .state = POD_BOUND, .gpus = sim_one_in(s, 3), .cpus = 1 + sim_up_to(s, 3), .priority = OTHERS_PRIORITY};
    if (sim_one_in(s, 2))
        p.priority = 0;
    for (int k = 0; k < s->n_nodes; k++) {
        p.node = (from + k) % s->n_nodes;
        if (!s->nodes[p.node].up || !sim_fits(&there[p.node], &p))
            continue;
        p.version = (uint32_t)++s->serial;
        snprintf(p.name, sizeof p.name, "other-%u", p.version);
        s->others[i] = p;
        sim_show(s, &s->others[i]);
        s->report->others++;
        sim_after(s, (int64_t)(1 + sim_up_to(s, 180)) * MINUTE, OTHER_GOES, i, p.version);
        return;
    }
}

// kube-scheduler

static void bind(struct sim *s)
{
    for (int i = 0; i < GANGS_MAX; i++) {
        struct sgang *g = &s->gangs[i];
        int bound = 0;
        for (int k = 0; g->state == GANG_BINDING && g->seen && k < g->n; k++) {
            struct spod *p = &g->pods[k];
            struct load now[NODES_MAX];
            sim_loads(s, false, INT32_MIN, now);
            if (p->state == POD_PINNED && s->nodes[p->node].up && sim_fits(&now[p->node], p)) {
                p->state = POD_BOUND;
                sim_show(s, p);
            } else if (p->state == POD_PINNED && s->nodes[p->node].up) {
                sim_evict_for(s, p);
            }
            bound += p->state == POD_BOUND;
        }
        if (g->state != GANG_BINDING || bound < g->n)
            continue;
        g->state = GANG_RUNNING;
        g->backoffs = 0;
        g->n_contended = 0;
        g->version++;
        sim_after(s, g->length_ms, FINISHED, i, g->version);
    }
}

// Failures.

static void node_goes(struct sim *s, int i)
{
    struct snode *n = &s->nodes[i];
    struct spod *p;
    if (!n->up)
        return;
    n->up = false;
    cluster_del_node(s->cluster, n->name);
    object_unref(&n->object->obj);
    n->object = NULL;
    s->report->nodes_lost++;
    for (int k = 0; (p = sim_next_pod(s, &k));) {
        if (p->node != i)
            continue;
        if (p->gang)
            evict_gang(s, p->gang);
        else
            sim_pod_gone(s, p);
    }
    sim_after(s, (int64_t)(1 + sim_up_to(s, 120)) * MINUTE, NODE_COMES, i, 0);
}

static void watch_all(struct sim *s)
{
    struct spod *p;
    s->cluster = cluster_new();
    s->line = line_new();
    for (int i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].up)
            cluster_set_node(s->cluster, s->nodes[i].object);
    for (int i = 0; (p = sim_next_pod(s, &i));)
        cluster_set_pod(s->cluster, p->object);
}

// A new leader knows only what the API server has. It looks at all gangs, in any order.
static void crash(struct sim *s)
{
    s->dies = s->dead = false;
    s->report->crashes++;
    cluster_free(s->cluster);
    line_free(s->line);
    watch_all(s);
    int from = sim_up_to(s, GANGS_MAX - 1);
    for (int i = 0; i < GANGS_MAX; i++) {
        struct sgang *g = &s->gangs[(from + i) % GANGS_MAX];
        int pods = 0;
        for (int k = 0; k < g->n; k++)
            pods += g->pods[k].state != POD_NONE;
        g->n_contended = 0;
        if (g->state == GANG_WAITING || (g->state == GANG_BINDING && pods < g->n)) {
            if (!pods && g->state == GANG_BINDING)
                waits_from_now_on(s, g);
            decide(s, g);
        }
    }
}

static void pod_ended(struct sim *s, const struct event *e)
{
    if (e->which < 0) {
        struct spod *p = &s->others[-1 - e->which];
        if (p->version == e->version)
            sim_pod_gone(s, p);
    } else if (s->gangs[e->which].version == e->version) {
        evict_gang(s, &s->gangs[e->which]); // one pod is gone, so all pods of its gang go
    }
}

static void happen(struct sim *s, const struct event *e)
{
    struct sgang *g = &s->gangs[MAX(e->which, 0)];
    bool recurring = e->kind == ARRIVAL || e->kind == OTHER_COMES || e->kind == NODE_GOES || e->kind == CRASH;
    if (recurring && s->draining)
        return;
    bool valid = g->version == e->version;
    switch (e->kind) {
    case ARRIVAL: {
        // Rush hours, and quiet ones.
        bool rush = (s->now_ms / (6 * HOUR)) % 2;
        arrive(s);
        sim_after(s, rand_range(&s->rand, 1, 2 * (rush ? 5 : 14) * MINUTE * 24 / s->n_nodes), ARRIVAL, 0, 0);
        break;
    }
    case OTHER_COMES:
        other_comes(s);
        sim_after(s, rand_range(&s->rand, 1, 8 * MINUTE * 24 / s->n_nodes), OTHER_COMES, 0, 0);
        break;
    case OTHER_GOES:
        if (s->others[e->which].version == e->version)
            sim_pod_gone(s, &s->others[e->which]);
        break;
    case NODE_GOES:
        node_goes(s, sim_up_to(s, s->n_nodes - 1));
        sim_after(s, rand_range(&s->rand, HOUR, 24 * HOUR), NODE_GOES, 0, 0);
        break;
    case NODE_COMES:
        sim_node_up(s, e->which);
        break;
    case CRASH:
        if (sim_one_in(s, 2))
            s->dies = true; // at the next creation
        else
            crash(s);
        sim_after(s, rand_range(&s->rand, HOUR, 12 * HOUR), CRASH, 0, 0);
        break;
    case DELETED:
        if (g->state != GANG_NONE && g->uid == e->version)
            gang_ends(s, g);
        break;
    case FINISHED:
        if (valid && g->state == GANG_RUNNING) {
            gang_ends(s, g);
            s->report->finished++;
        }
        break;
    case SCHEDULER:
        g->seen |= valid;
        break;
    case UNBOUND:
        if (valid && g->state == GANG_BINDING)
            give_back(s, g);
        break;
    case POD_GONE:
        pod_ended(s, e);
        break;
    case AGAIN:
        if (valid && g->state == GANG_BACKOFF)
            waits_from_now_on(s, g);
        break;
    }
}

// The time of the next event, or of the next look at a waiting gang.
static int64_t next_ms(const struct sim *s)
{
    int64_t ms = s->n_heap ? s->heap[0].at_ms : INT64_MAX;
    for (int i = 0; i < GANGS_MAX; i++)
        if (s->gangs[i].state == GANG_WAITING && s->gangs[i].again_ms)
            ms = MIN(ms, MAX(s->gangs[i].again_ms, s->now_ms));
    return ms;
}

static void look_again(struct sim *s)
{
    for (int i = 0; i < GANGS_MAX; i++) {
        struct sgang *g = &s->gangs[i];
        if (g->state == GANG_WAITING && g->again_ms && g->again_ms <= s->now_ms)
            decide(s, g);
    }
    if (cluster_epoch(s->cluster) != s->epoch)
        wake(s);
    if (s->dead)
        crash(s);
}

static void begin(struct sim *s, const struct simulation_options *o)
{
    rand_seed(&s->rand, o->seed);
    s->n_nodes = MIN(o->nodes, NODES_MAX);
    s->cluster = cluster_new();
    s->line = line_new();
    for (int i = 0; i < s->n_nodes; i++) {
        snprintf(s->nodes[i].name, sizeof s->nodes[i].name, "n%d", i);
        snprintf(s->nodes[i].rack, sizeof s->nodes[i].rack, "r%d", i / RACK);
        sim_node_up(s, i);
    }
    static const enum event_kind first[] = {ARRIVAL, OTHER_COMES, NODE_GOES, CRASH};
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        sim_after(s, 1, first[i], 0, 0);
}

static void end(struct sim *s)
{
    for (int i = 0; i < GANGS_MAX; i++)
        give_up_pods(s, &s->gangs[i]);
    for (int i = 0; i < OTHERS_MAX; i++)
        sim_pod_gone(s, &s->others[i]);
    for (int i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].object)
            object_unref(&s->nodes[i].object->obj);
    cluster_free(s->cluster);
    line_free(s->line);
}

// All gangs have ended, except those that the cluster could never take.
static void check_end(struct sim *s)
{
    for (int i = 0; i < GANGS_MAX; i++) {
        struct sgang *g = &s->gangs[i];
        if (g->state == GANG_NONE)
            continue;
        decide(s, g);
        if (g->state != GANG_WAITING)
            sim_fail(s, "%s was left waiting, and fits", g->name);
    }
    for (int i = 0; i < s->n_nodes; i++) {
        if (!s->nodes[i].up)
            sim_node_up(s, i);
        if (room_used(cluster_room(s->cluster, s->nodes[i].name), RESOURCE_GPU) && !*s->wrong)
            sim_fail(s, "%s is empty, but accounted as used", s->nodes[i].name);
    }
}

const char *simulation_run(const struct simulation_options *o, struct simulation_report *ret)
{
    static char text[320];
    struct sim *s = xcalloc(1, sizeof *s);
    s->report = ret;
    *ret = (struct simulation_report){0};
    begin(s, o);
    int64_t drained_ms = 0;
    while (!*s->wrong && s->n_heap) {
        int64_t ms = next_ms(s);
        s->now_ms = ms;
        if (s->heap[0].at_ms == ms) {
            struct event e = sim_next_event(s);
            ret->events++;
            happen(s, &e);
        }
        look_again(s);
        bind(s);
        check_accounting(s);
        check_gangs(s);
        if (!s->draining && ret->events >= o->events) {
            s->draining = true;
            drained_ms = s->now_ms;
        }
        if (s->draining && s->now_ms - drained_ms > 90 * 24 * (int64_t)HOUR)
            sim_fail(s, "it does not come to rest");
    }
    ret->days = s->now_ms / (24 * HOUR);
    if (!*s->wrong)
        check_end(s);
    snprintf(text, sizeof text, "seed %" PRIu64 ": %s", o->seed, s->wrong);
    bool wrong = *s->wrong;
    end(s);
    free(s);
    return wrong ? text : NULL;
}
