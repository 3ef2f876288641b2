// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/census.h"

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <string.h>

enum { STATUS_LOST_MS = 60 * 1000, RANGES_MAX = 64 * 1024 };

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
    int64_t patience = (int64_t)v->wg->spec.node_lost_s * 1000;
    int64_t left = n->ready_changed_ms + patience - v->now_ms;
    if (left > 0 && ret_ms)
        *ret_ms = MIN(left, patience); // a clock that was put back must not keep us waiting
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

static int64_t deletion_asked_ms(const struct pod *p)
{
    return p->obj.meta.deleted_ms - p->obj.meta.deletion_grace_s * 1000;
}

static int64_t ended_ms(const struct group_view *v, const struct pod *p)
{
    const struct container_status *s = culprit(p);
    return s && s->finished_ms ? MIN(s->finished_ms, v->now_ms) : v->now_ms;
}

static struct group_failure failure_of(const struct group_view *v, const struct pod *p, bool lost, bool deleted,
                                       int32_t index)
{
    const struct container_status *s = culprit(p);
    struct group_failure f = {
        .rank = index * v->wg->spec.workers_per_replica,
        .pod = p->obj.meta.name,
        .node = p->node,
        .exit_code = s ? s->exit_code : -1,
        .time_ms = ended_ms(v, p),
        .reason = s && s->reason ? s->reason
                  : p->reason    ? p->reason
                                 : FAILURE_ERROR,
        .message = s && s->message ? s->message : p->message,
    };
    if (p->disruption) {
        f.reason = p->disruption;
        f.message = p->message;
    } else if (lost) {
        f.reason = FAILURE_NODE_LOST;
        f.message = "the node has been silent for longer than placement.nodeLostSeconds, or is gone";
    } else if (deleted) {
        f.reason = FAILURE_POD_DELETED;
        f.message = "the pod was deleted from outside";
    }
    return f;
}

static void note_silence(struct census *c, const struct group_view *v, const struct pod *p, bool current)
{
    int64_t left = -1;
    bool awaited = !pod_terminal(p) || p->obj.meta.deleted_ms;
    if (!awaited || census_node_lost(v, p, &left) || left < 0)
        return;
    if (c->look_again_ms < 0 || left < c->look_again_ms)
        c->look_again_ms = left;
    int64_t since = cluster_node(v->cluster, p->node)->ready_changed_ms;
    if (current && (!c->silent_since_ms || since < c->silent_since_ms))
        c->silent_since_ms = since;
}

static void note_failure(struct census *c, const struct group_view *v, const struct pod *p, int32_t index)
{
    bool failed = p->phase == POD_FAILED;
    bool lost = !pod_terminal(p) && census_node_lost(v, p, NULL);
    // Killed by the deletion, if it ended after that.
    bool deleted =
        p->obj.meta.deleted_ms && p->phase != POD_SUCCEEDED && (!failed || ended_ms(v, p) >= deletion_asked_ms(p));
    if (!failed && !lost && !deleted)
        return;
    bool infrastructure = p->disruption || lost || deleted;
    int64_t began = ended_ms(v, p);
    if (lost) {
        const struct node *n = cluster_node(v->cluster, p->node);
        began = n ? n->ready_changed_ms : 0;
    } else if (deleted) {
        began = deletion_asked_ms(p);
    }
    // The first failure explains those that it caused; within the same second (Kubernetes' clock) it is rather the
    // infrastructure's.
    bool first = !c->failure.time_ms || began < c->failure_began_ms ||
                 (began == c->failure_began_ms && infrastructure && !c->infrastructure);
    if (!first)
        return;
    c->failure = failure_of(v, p, lost, deleted, index);
    c->failure_began_ms = began;
    c->infrastructure = infrastructure;
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
    c->succeeded += p->phase == POD_SUCCEEDED;
    c->newest_ms = MAX(c->newest_ms, p->obj.meta.created_ms);
    if (!p->node && p->unschedulable && !c->unschedulable)
        c->unschedulable = p;
}

// Pods of an attempt or incarnation that the status does not know yet: our view of the status is older than they are.
// If it stays so, somebody has taken the status away, and then the pods' word counts.
static void note_future(struct census *c, const struct group_view *v)
{
    int32_t attempt = c->attempt, incarnation = c->incarnation;
    int64_t newest = 0;
    bool found = false;
    for (size_t i = 0; i < v->n_pods; i++) {
        int32_t its_attempt = pod_label_number(v->pods[i], LABEL_ATTEMPT);
        int32_t its_incarnation = pod_label_number(v->pods[i], LABEL_INCARNATION);
        if (its_attempt <= c->attempt && its_incarnation <= c->incarnation)
            continue;
        found = true;
        attempt = MAX(attempt, its_attempt);
        incarnation = MAX(incarnation, its_incarnation);
        newest = MAX(newest, v->pods[i]->obj.meta.created_ms);
    }
    c->from_the_future = found && v->now_ms - newest < STATUS_LOST_MS;
    if (!c->from_the_future) {
        c->attempt = attempt;
        c->incarnation = incarnation;
    }
}

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
        c->stale[c->n_stale++] = *seat;
    return seat;
}

static void sort_pods(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    c->current = arena_array(a, (size_t)c->replicas, sizeof *c->current);
    c->stale = arena_array(a, v->n_pods, sizeof *c->stale);
    for (size_t i = 0; i < v->n_pods; i++) {
        const struct pod *p = v->pods[i];
        bool mine = pod_label_number(p, LABEL_ATTEMPT) == c->attempt &&
                    pod_label_number(p, LABEL_INCARNATION) == c->incarnation;
        c->mine += mine;
        if (mine && pod_spec_hash(p) != spec_hash)
            c->changed = true;
        const struct pod **seat = mine ? seat_of(c, v, p, pod_label_number(p, LABEL_INDEX), a) : NULL;
        if (seat)
            *seat = p;
        else
            c->stale[c->n_stale++] = p;
    }
}

void census_take(const struct group_view *v, uint64_t spec_hash, struct arena *a, struct census *ret)
{
    const struct workergroup *wg = v->wg;
    *ret = (struct census){
        .attempt = MAX(wg->status.attempt, 1),
        .incarnation = MAX(wg->status.incarnation, 0),
        .replicas = wg->spec.replicas,
        .look_again_ms = -1,
    };
    note_future(ret, v);
    sort_pods(ret, v, spec_hash, a);
    for (size_t i = 0; i < ret->n_stale; i++)
        note_silence(ret, v, ret->stale[i], false);
    for (int32_t i = 0; i < ret->replicas; i++) {
        if (!ret->current[i])
            continue;
        count(ret, ret->current[i]);
        note_silence(ret, v, ret->current[i], true);
        note_failure(ret, v, ret->current[i], i);
        note_stuck(ret, ret->current[i]);
    }
    // What fails while the node of another rank is silent has most likely lost its peer.
    if (ret->failure.time_ms && ret->silent_since_ms && ret->failure_began_ms >= ret->silent_since_ms)
        ret->infrastructure = true;
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
            *r = (struct ranges){BUF_INIT(RANGES_MAX), -1, -1};
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
