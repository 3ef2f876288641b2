// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/census.h"

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <string.h>

static const char *pod_place(const struct pod *p)
{
    return p->node ? p->node : p->pin;
}

bool census_node_lost(const struct group_view *v, const struct pod *p, int64_t *ret_ms)
{
    if (!p->node)
        return false;
    const struct node *n = cluster_node(v->cluster, p->node);
    if (!n)
        return true;
    if (n->ready)
        return false;
    int64_t left = n->ready_changed_ms + (int64_t)v->wg->spec.node_lost_s * 1000 - v->now_ms;
    if (left > 0 && ret_ms)
        *ret_ms = left;
    return left <= 0;
}

static const char *stuck_reason(const char *waiting)
{
    static const struct {
        const char *waiting, *reason;
    } table[] = {
        {"ErrImagePull", REASON_IMAGE},
        {"ImagePullBackOff", REASON_IMAGE},
        {"InvalidImageName", REASON_IMAGE},
        {"ErrImageNeverPull", REASON_IMAGE},
        {"ImageInspectError", REASON_IMAGE},
        {"CreateContainerConfigError", REASON_CONTAINER_CONFIG},
        {"CreateContainerError", REASON_CONTAINER_CONFIG},
        {"RunContainerError", REASON_CONTAINER_CONFIG},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (str_eq(waiting, table[i].waiting))
            return table[i].reason;
    return NULL;
}

// The container that made the pod fail: the one that ended first with an exit code of its own.
static const struct container_status *culprit(const struct pod *p)
{
    const struct container_status *first = NULL;
    for (size_t i = 0; i < p->n_containers; i++) {
        const struct container_status *s = &p->containers[i];
        if (s->terminated && s->exit_code != 0 && (!first || s->finished_ms < first->finished_ms))
            first = s;
    }
    return first;
}

static struct group_failure failure_of(const struct group_view *v, const struct pod *p, bool lost, int32_t index)
{
    const struct container_status *s = culprit(p);
    struct group_failure f = {
        .rank = index * v->wg->spec.workers_per_replica,
        .pod = p->obj.meta.name,
        .node = p->node,
        .exit_code = s ? s->exit_code : -1,
        .time_ms = s && s->finished_ms ? s->finished_ms : v->now_ms,
        .reason = s && s->reason ? s->reason : p->reason ? p->reason : FAILURE_ERROR,
        .message = s && s->message ? s->message : p->message,
    };
    if (p->disruption) {
        f.reason = p->disruption;
        f.message = p->message;
    } else if (lost) {
        f.reason = FAILURE_NODE_LOST;
        f.message = "the node has been silent for longer than placement.nodeLostSeconds, or is gone";
    } else if (p->phase != POD_FAILED) {
        f.reason = FAILURE_POD_DELETED;
        f.message = "the pod was deleted from outside";
    }
    return f;
}

static void note_failure(struct census *c, const struct group_view *v, const struct pod *p, int32_t index)
{
    int64_t left = -1;
    bool lost = !pod_terminal(p) && census_node_lost(v, p, &left);
    if (left >= 0 && (c->look_again_ms < 0 || left < c->look_again_ms))
        c->look_again_ms = left;
    bool deleted = p->obj.meta.deleted_ms && p->phase != POD_SUCCEEDED;
    if (p->phase != POD_FAILED && !lost && !deleted)
        return;
    struct group_failure f = failure_of(v, p, lost, index);
    bool infrastructure = p->disruption || p->phase != POD_FAILED;
    // The user's own failure explains more than the infrastructure's, and the first one more than those it caused.
    bool better = !c->failure.time_ms || (c->infrastructure && !infrastructure) ||
                  (c->infrastructure == infrastructure && f.time_ms < c->failure.time_ms);
    if (better) {
        c->failure = f;
        c->infrastructure = infrastructure;
    }
}

static void note_stuck(struct census *c, const struct pod *p)
{
    for (size_t i = 0; i < p->n_containers && !c->stuck; i++) {
        const struct container_status *s = &p->containers[i];
        const char *reason = s->waiting ? stuck_reason(s->reason) : NULL;
        if (reason) {
            c->stuck = p;
            c->stuck_container = s;
            c->stuck_reason = reason;
        }
    }
}

static void count(struct census *c, const struct pod *p)
{
    c->existing++;
    c->bound += p->node != NULL;
    c->ready += p->ready && p->phase == POD_RUNNING;
    c->running += p->phase == POD_RUNNING;
    c->succeeded += p->phase == POD_SUCCEEDED;
    if (!c->oldest_ms || p->obj.meta.created_ms < c->oldest_ms)
        c->oldest_ms = p->obj.meta.created_ms;
    if (!p->node && p->unschedulable && !c->unschedulable)
        c->unschedulable = p;
}

void census_take(const struct group_view *v, uint64_t spec_hash, struct arena *a, struct census *ret)
{
    const struct workergroup *wg = v->wg;
    *ret = (struct census){
        .attempt = MAX(wg->status.attempt, 1),
        .incarnation = wg->status.incarnation,
        .replicas = wg->spec.replicas,
        .look_again_ms = -1,
    };
    ret->current = arena_array(a, (size_t)ret->replicas, sizeof *ret->current);
    ret->stale = arena_array(a, v->n_pods, sizeof *ret->stale);
    for (size_t i = 0; i < v->n_pods; i++) {
        const struct pod *p = v->pods[i];
        int32_t attempt = pod_label_number(p, LABEL_ATTEMPT);
        int32_t incarnation = pod_label_number(p, LABEL_INCARNATION);
        int32_t index = pod_label_number(p, LABEL_INDEX);
        if (attempt > ret->attempt || incarnation > ret->incarnation)
            ret->from_the_future = true;
        bool mine = attempt == ret->attempt && incarnation == ret->incarnation;
        if (mine && pod_spec_hash(p) != spec_hash)
            ret->changed = true;
        if (mine && index >= 0 && index < ret->replicas)
            ret->current[index] = p;
        else
            ret->stale[ret->n_stale++] = p;
    }
    for (int32_t i = 0; i < ret->replicas; i++) {
        if (!ret->current[i])
            continue;
        count(ret, ret->current[i]);
        note_failure(ret, v, ret->current[i], i);
        note_stuck(ret, ret->current[i]);
    }
}

// Appends index i to a compact list such as "0-3,6": `last` is the index appended before, `open` where its range began.
struct ranges {
    struct buf text;
    int32_t first, last;
};

static void ranges_flush(struct ranges *r)
{
    if (r->first < 0)
        return;
    if (r->text.len)
        buf_putc(&r->text, ',');
    if (r->first == r->last)
        buf_printf(&r->text, "%d", r->first);
    else
        buf_printf(&r->text, "%d-%d", r->first, r->last);
}

static void ranges_add(struct ranges *r, int32_t i)
{
    if (r->first >= 0 && i == r->last + 1) {
        r->last = i;
        return;
    }
    ranges_flush(r);
    r->first = r->last = i;
}

size_t census_placements(const struct census *c, struct arena *a, struct node_replicas **ret)
{
    struct map by_node = MAP_INIT;
    struct ranges *ranges = arena_array(a, (size_t)c->existing, sizeof *ranges);
    struct node_replicas *out = arena_array(a, (size_t)c->existing, sizeof *out);
    size_t n = 0;
    for (int32_t i = 0; i < c->replicas; i++) {
        const char *node = c->current[i] ? pod_place(c->current[i]) : NULL;
        if (!node)
            continue;
        struct ranges *r = map_get(&by_node, node);
        if (!r) {
            out[n].node = node;
            r = &ranges[n++];
            *r = (struct ranges){BUF_INIT(16 * 1024), -1, -1};
            map_set(&by_node, node, r);
        }
        ranges_add(r, i);
    }
    for (size_t i = 0; i < n; i++) {
        ranges_flush(&ranges[i]);
        out[i].replicas = arena_strdup(a, buf_str(&ranges[i].text));
        buf_done(&ranges[i].text);
    }
    map_done(&by_node);
    *ret = out;
    return n;
}
