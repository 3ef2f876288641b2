// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/seats.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>

// Where a pod of ours belongs, NULL if it does not belong to the present set. A copy that somebody made of a pod has
// its labels, but not its name.
static const struct pod **seat_of(struct census *c, const struct group_view *v, const struct pod *p, int32_t index,
                                  struct arena *a)
{
    if (index < 0 || index >= c->replicas)
        return NULL;
    const struct pod **seat = &c->current[index];
    if (*seat && !str_eq(p->obj.meta.name, group_pod_name(v->wg, index, c->incarnation, a)))
        return NULL;
    if (*seat)
        c->pods.gone[c->pods.n_gone++] = *seat;
    return seat;
}

static bool alive(const struct group_view *v, const struct pod *p)
{
    return !p->obj.meta.deleted_ms && !pod_terminal(p) && !census_node_lost(v, p, NULL);
}

static bool is_copy(const struct group_view *v, const struct pod *p, int32_t index, int32_t incarnation,
                    struct arena *a)
{
    return !str_eq(p->obj.meta.name, group_pod_name(v->wg, index, incarnation, a));
}

// See the head of census.h.
static void sort_agent_pods(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++)
        if (pod_label_number(v->gang.pods[i], LABEL_INCARNATION) == c->incarnation)
            c->begun = true;
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        int32_t index = pod_label_number(p, LABEL_INDEX), incarnation = pod_label_number(p, LABEL_INCARNATION);
        bool same = pod_spec_hash(p) == spec_hash;
        bool counts = index >= 0 && incarnation >= 0 && !is_copy(v, p, index, incarnation, a) &&
                      (c->begun || (same && alive(v, p)));
        c->mine += counts;
        c->changed = c->changed || (counts && !same);
        const struct pod **seat = counts && index < c->replicas ? &c->current[index] : NULL;
        if (seat && *seat && pod_label_number(*seat, LABEL_INCARNATION) > incarnation)
            seat = NULL;
        const struct pod *stale = seat ? *seat : p;
        if (stale)
            c->pods.gone[c->pods.n_gone++] = stale;
        if (seat)
            *seat = p;
    }
}

static void sort_pods(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        bool mine = pod_label_number(p, LABEL_ATTEMPT) == c->attempt &&
                    pod_label_number(p, LABEL_INCARNATION) == c->incarnation;
        c->mine += mine;
        c->begun = c->begun || mine;
        if (mine && pod_spec_hash(p) != spec_hash)
            c->changed = true;
        const struct pod **seat = mine ? seat_of(c, v, p, pod_label_number(p, LABEL_INDEX), a) : NULL;
        if (seat)
            *seat = p;
        else
            c->pods.gone[c->pods.n_gone++] = p;
    }
}

static bool was_bound(const struct workergroup *wg)
{
    const struct condition *c = condition_find(wg->status.conditions, wg->status.n_conditions, COND_SCHEDULED);
    return c && c->status == CONDITION_TRUE;
}

static bool is_revised(const struct workergroup *wg, uint64_t spec_hash, struct arena *a)
{
    const char *was = wg->status.revision.pods;
    return was && was_bound(wg) && !str_eq(was, arena_printf(a, "%016" PRIx64, spec_hash));
}

// The pods are others', and say nothing of the group: what its processes were started from is in its status.
static void sit_down(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (int32_t i = 0; i < c->replicas; i++) {
        c->current[i] = c->pooled->berths[i].pod;
        c->mine += c->current[i] != NULL;
    }
    c->changed = is_revised(v->wg, spec_hash, a);
}

void seats_prepare(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    if (!v->wg->spec.n_placement_groups)
        return;
    struct pooled *pooled = arena_new(a, struct pooled);
    pooled_take(v, was_bound(v->wg) && !is_revised(v->wg, spec_hash, a), a, pooled);
    c->pooled = pooled;
}

void seats_take(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    c->current = arena_array(a, (size_t)c->replicas, sizeof *c->current);
    c->pods.live = c->current;
    c->pods.n_live = (size_t)c->replicas;
    c->failed = arena_array(a, (size_t)c->replicas, sizeof *c->failed);
    c->pods.gone = arena_array(a, v->gang.n_pods, sizeof *c->pods.gone);
    if (c->pooled)
        sit_down(c, v, spec_hash, a);
    else if (v->wg->spec.runtime == RUNTIME_AGENT)
        sort_agent_pods(c, v, spec_hash, a);
    else
        sort_pods(c, v, spec_hash, a);
}
