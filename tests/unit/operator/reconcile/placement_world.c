// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/placement_world.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool sim_one_in(struct sim *s, uint64_t n)
{
    return rand_below(&s->rand, n) == 0;
}

int sim_up_to(struct sim *s, int n)
{
    return (int)rand_below(&s->rand, (uint64_t)n + 1);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    va_list ap;
    if (*s->wrong)
        return;
    int len = snprintf(s->wrong, sizeof s->wrong, "after %" PRId64 " events, at %" PRId64 " s: ", s->report->events,
                       s->now_ms / SECOND);
    va_start(ap, fmt);
    vsnprintf(s->wrong + len, sizeof s->wrong - (size_t)len, fmt, ap);
    va_end(ap);
}

// Events, by a binary heap.

void sim_after(struct sim *s, int64_t ms, enum event_kind kind, int which, uint32_t version)
{
    int i = s->n_heap++;
    if (i == EVENTS_MAX) {
        sim_fail(s, "too many events");
        s->n_heap--;
        return;
    }
    struct event e = {s->now_ms + MAX(ms, (int64_t)1), kind, which, version};
    for (; i > 0 && s->heap[(i - 1) / 2].at_ms > e.at_ms; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

struct event sim_next_event(struct sim *s)
{
    struct event first = s->heap[0], last = s->heap[--s->n_heap];
    int i = 0;
    for (int k; (k = 2 * i + 1) < s->n_heap; i = k) {
        if (k + 1 < s->n_heap && s->heap[k + 1].at_ms < s->heap[k].at_ms)
            k++;
        if (s->heap[k].at_ms >= last.at_ms)
            break;
        s->heap[i] = s->heap[k];
    }
    s->heap[i] = last;
    return first;
}

// Objects

static void *new_object(enum kind kind, size_t size, const char *name)
{
    struct arena arena = ARENA_INIT;
    arena_init(&arena, 512);
    struct object *o = arena_alloc(&arena, size);
    o->refs = 1;
    o->kind = kind;
    o->meta.name = arena_strdup(&arena, name);
    o->meta.ns = kind == KIND_NODE ? "" : "ml";
    o->arena = arena;
    return o;
}

static struct resources amounts(struct arena *a, int gpus, int cpus, int pods)
{
    struct resource *r = arena_array(a, 3, sizeof *r);
    size_t n = 0;
    r[n++] = (struct resource){RESOURCE_CPU, cpus * 1000};
    r[n++] = (struct resource){RESOURCE_PODS, pods * 1000};
    if (gpus)
        r[n++] = (struct resource){RESOURCE_GPU, gpus * 1000};
    return (struct resources){r, n};
}

void sim_node_up(struct sim *s, int i)
{
    struct snode *n = &s->nodes[i];
    struct node *o = new_object(KIND_NODE, sizeof *o, n->name);
    struct label *rack = arena_new(&o->obj.arena, struct label);
    *rack = (struct label){"rack", arena_strdup(&o->obj.arena, n->rack)};
    o->obj.meta.labels = (struct labels){rack, 1};
    o->ready = true;
    o->allocatable = amounts(&o->obj.arena, GPUS, CPUS, 110);
    n->object = o;
    n->up = true;
    cluster_set_node(s->cluster, o);
}

void sim_show(struct sim *s, struct spod *p)
{
    struct pod *o = new_object(KIND_POD, sizeof *o, p->name);
    const char *node = arena_strdup(&o->obj.arena, s->nodes[p->node].name);
    o->node = p->state == POD_PINNED ? NULL : node;
    o->pin = p->gang ? node : NULL;
    o->priority = p->priority;
    o->phase = POD_RUNNING;
    o->requests = amounts(&o->obj.arena, p->gpus, p->cpus, 1);
    o->obj.meta.created_ms = s->now_ms;
    o->obj.meta.deleted_ms = p->state == POD_ENDING ? s->now_ms : 0;
    if (p->gang) {
        struct label *group = arena_new(&o->obj.arena, struct label);
        *group = (struct label){"cadre.dev/group", p->gang->name};
        o->obj.meta.labels = (struct labels){group, 1};
        o->obj.meta.owner = (struct owner){"cadre.dev/v1alpha1", "WorkerGroup", p->gang->name, p->gang->name};
    }
    if (p->object)
        object_unref(&p->object->obj);
    p->object = o;
    cluster_set_pod(s->cluster, o);
}

void sim_pod_gone(struct sim *s, struct spod *p)
{
    if (p->state == POD_NONE)
        return;
    cluster_del_pod(s->cluster, "ml", p->name);
    object_unref(&p->object->obj);
    *p = (struct spod){0};
}

// The nodes as they really are.

struct spod *sim_next_pod(struct sim *s, int *i)
{
    while (*i < OTHERS_MAX + GANGS_MAX * GANG_PODS) {
        int k = (*i)++;
        struct spod *p;
        if (k < OTHERS_MAX) {
            p = &s->others[k];
        } else {
            struct sgang *g = &s->gangs[(k - OTHERS_MAX) / GANG_PODS];
            if (g->state == GANG_NONE || (k - OTHERS_MAX) % GANG_PODS >= g->n) {
                *i = OTHERS_MAX + ((k - OTHERS_MAX) / GANG_PODS + 1) * GANG_PODS;
                continue;
            }
            p = &g->pods[(k - OTHERS_MAX) % GANG_PODS];
        }
        if (p->state != POD_NONE)
            return p;
    }
    return NULL;
}

void sim_loads(struct sim *s, bool pinned, int32_t priority, struct load ret[NODES_MAX])
{
    memset(ret, 0, sizeof *ret * NODES_MAX);
    struct spod *p;
    for (int i = 0; (p = sim_next_pod(s, &i));) {
        if (p->priority < priority || (p->state == POD_PINNED && !pinned))
            continue;
        ret[p->node].gpus += p->gpus;
        ret[p->node].cpus += p->cpus;
    }
}

bool sim_fits(const struct load *l, const struct spod *p)
{
    return (!p->gpus || l->gpus + p->gpus <= GPUS) && l->cpus + p->cpus <= CPUS;
}

bool sim_evict_for(struct sim *s, const struct spod *p)
{
    struct load stays[NODES_MAX];
    struct spod *v;
    sim_loads(s, false, p->priority, stays); // as if all others were gone
    if (!p->gang->needs.preempts || !sim_fits(&stays[p->node], p))
        return false;
    struct load l = stays[p->node];
    for (int32_t priority = p->priority - 1; priority >= 0; priority--) {
        for (int i = 0; (v = sim_next_pod(s, &i));) {
            if (v->node != p->node || v->state == POD_PINNED || v->priority != priority)
                continue;
            struct load with = {l.gpus + v->gpus, l.cpus + v->cpus};
            if (sim_fits(&with, p)) {
                l = with;
            } else if (v->state == POD_BOUND) {
                v->state = POD_ENDING;
                sim_show(s, v);
                s->report->evicted++;
                sim_after(s, GRACE, POD_GONE, v->gang ? (int)(v->gang - s->gangs) : -1 - (int)(v - s->others),
                          v->gang ? v->gang->version : v->version);
            }
        }
    }
    return true;
}
