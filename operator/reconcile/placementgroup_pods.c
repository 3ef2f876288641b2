// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/placementgroup_pods.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>

struct candidate {
    const struct pod *pod;
    int32_t index, incarnation;
    int32_t *items;
    size_t n;
    bool same;
};

static bool lost_a_gpu(const struct placementgroup_view *v, size_t i)
{
    return v->gpu_lost && v->gpu_lost[i];
}

// Returns why pod i of the view is dead; NULL while it lives. If a pod has lost a GPU, a group that runs on it has
// deleted it.
static const char *death_of(const struct placementgroup_view *v, size_t i, int64_t *ret_left)
{
    const struct pod *p = v->gang.pods[i];
    if (pod_node_gone(v->gang.cluster, p, v->plg->spec.gang.node_lost_s, v->gang.now_ms, ret_left))
        return FAILURE_NODE_LOST;
    if (p->obj.meta.deleted_ms)
        return lost_a_gpu(v, i) ? FAILURE_GPU_LOST : FAILURE_POD_DELETED;
    if (!pod_terminal(p))
        return NULL;
    return p->disruption ? p->disruption : p->reason ? p->reason : FAILURE_ERROR;
}

static void note_dead(struct placementgroup_pods *r, const struct pod *p, const char *why)
{
    r->gang.gone[r->gang.n_gone++] = p;
    if (why && !r->lost) {
        r->lost = p;
        r->lost_reason = why;
    }
    if (p->phase == POD_FAILED && !p->disruption && !p->obj.meta.deleted_ms)
        r->gang.own_failure = true;
}

// The device plugin of the node may not have noticed the loss yet, and would hand out the lost GPU again.
static void avoid(struct placementgroup_pods *r, const char *node)
{
    size_t i = 0;
    while (i < r->n_avoided && !str_eq(r->avoided[i], node))
        i++;
    r->avoided[i] = node;
    r->n_avoided = MAX(r->n_avoided, i + 1);
}

// The newest first: if two pods claim a bundle, the newer one was made with more knowledge.
static int cmp_candidate(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int c = (y->incarnation > x->incarnation) - (y->incarnation < x->incarnation);
    return c ? c : str_cmp_natural(x->pod->obj.meta.name, y->pod->obj.meta.name);
}

static bool may_hold(const struct placementgroup_pods *r, const struct candidate *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (r->pod_of[c->items[i]])
            return false;
    return c->n > 0;
}

static void assign(struct placementgroup_pods *r, const struct candidate *c)
{
    for (size_t i = 0; i < c->n; i++)
        r->pod_of[c->items[i]] = c->pod;
    r->present += (int32_t)c->n;
    r->bound += c->pod->node ? (int32_t)c->n : 0;
    r->changed = r->changed || !c->same;
}

// Returns false for a pod that is not ours: if somebody has made a copy of a pod, the copy has the labels, but not the
// name.
static bool read_pod(const struct placementgroup_view *v, const struct bundles *b, uint64_t template_hash,
                     const struct pod *p, struct arena *a, struct candidate *ret)
{
    *ret = (struct candidate){
        .pod = p,
        .index = pod_label_number(p, LABEL_INDEX),
        .incarnation = pod_label_number(p, LABEL_INCARNATION),
    };
    if (ret->index < 0 || ret->incarnation < 0 ||
        !str_eq(p->obj.meta.name, bundlepod_name(v->plg, ret->index, ret->incarnation, a)))
        return false;
    bool ok = bundles_of_pod(b, p, a, &ret->items, &ret->n, &ret->same);
    ret->same = ret->same && pod_spec_hash(p) == template_hash;
    return ok;
}

static int cmp_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->items[0] > y->items[0]) - (x->items[0] < y->items[0]);
}

static void assign_all(struct placementgroup_pods *r, const struct placementgroup_view *v, struct candidate *candidates,
                       size_t n, const struct pod **live)
{
    size_t assigned = 0;
    qsort(candidates, n, sizeof *candidates, cmp_candidate);
    for (size_t i = 0; i < n; i++) {
        if (!may_hold(r, &candidates[i])) {
            note_dead(r, candidates[i].pod, NULL);
            continue;
        }
        assign(r, &candidates[i]);
        candidates[assigned++] = candidates[i];
    }
    qsort(candidates, assigned, sizeof *candidates, cmp_first);
    r->gang.live = live;
    r->gang.n_live = assigned;
    for (size_t i = 0; i < assigned; i++) {
        r->differs[i] = !candidates[i].same;
        live[i] = candidates[i].pod;
        r->gang.older = r->gang.older || candidates[i].incarnation != r->gang.incarnation;
        gang_pods_count(&r->gang, &v->gang, candidates[i].pod);
    }
}

void placementgroup_pods_take(const struct placementgroup_view *v, const struct bundles *b, uint64_t template_hash,
                              struct arena *a, struct placementgroup_pods *ret)
{
    size_t n = 0;
    struct candidate *candidates = arena_array(a, v->gang.n_pods, sizeof *candidates);
    *ret = (struct placementgroup_pods){
        .gang.incarnation = MAX(v->plg->status.incarnation, 0),
        .gang.look_again_ms = -1,
    };
    gang_pods_look_ahead(&ret->gang, &v->gang);
    ret->pod_of = arena_array(a, (size_t)b->n, sizeof *ret->pod_of);
    ret->differs = arena_array(a, v->gang.n_pods, sizeof *ret->differs);
    ret->avoided = arena_array(a, v->gang.n_pods, sizeof *ret->avoided);
    ret->gang.gone = arena_array(a, v->gang.n_pods, sizeof *ret->gang.gone);
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        int64_t left = -1;
        const struct pod *p = v->gang.pods[i];
        const char *why = death_of(v, i, &left);
        bool ours = read_pod(v, b, template_hash, p, a, &candidates[n]);
        if (left >= 0)
            gang_pods_look_again(&ret->gang, left);
        if (why && ours && p->node && lost_a_gpu(v, i))
            avoid(ret, p->node);
        if (why || !ours)
            note_dead(ret, p, ours && candidates[n].n ? why : NULL);
        else
            n++;
    }
    if (n)
        assign_all(ret, v, candidates, n, arena_array(a, n, sizeof(struct pod *)));
}
