// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/census.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/ranges.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/seats.h"

#include <inttypes.h>
#include <string.h>

enum {
    STATUS_LOST_MS = 60 * 1000,
    KILLED_MS = 60 * 1000, // for a kubelet that ends a pod to say so
    EXIT_SIGKILL = 137,
    EXIT_SIGTERM = 143,
};

bool census_node_lost(const struct group_view *v, const struct pod *p, int64_t *ret_ms)
{
    return pod_node_gone(v->gang.cluster, p, v->wg->spec.node_lost_s, v->gang.now_ms, ret_ms);
}

static bool has_agent(const struct group_view *v)
{
    return v->wg->spec.runtime == RUNTIME_AGENT;
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

static bool has_sidecars(const struct pod *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_containers; i++)
        n += !p->containers[i].init;
    return n > 1;
}

static bool was_killed(const struct container_status *s)
{
    return s->terminated && !s->init && (s->exit_code == EXIT_SIGTERM || s->exit_code == EXIT_SIGKILL) &&
           str_eq(s->reason, FAILURE_ERROR);
}

// The kubelet ends the containers of a pod that it evicts one by one, and says only then why; so what may have been
// killed by it counts after a while. How long that still is, for the container that was killed first.
static int64_t await_reason(struct census *c, const struct group_view *v)
{
    int64_t first_ms = 0;
    for (int32_t i = 0; i < c->replicas; i++) {
        const struct pod *p = c->current[i];
        for (size_t k = 0; p && has_sidecars(p) && k < p->n_containers; k++)
            if (was_killed(&p->containers[k]) && (!first_ms || p->containers[k].finished_ms < first_ms))
                first_ms = p->containers[k].finished_ms;
    }
    if (!first_ms)
        return 0;
    return patience_of(v->gang.memory, PATIENCE_KILLED, first_ms, first_ms, KILLED_MS, v->gang.now_ms, &c->killed);
}

// One of several containers has failed, while the others keep the pod going: nobody else would notice.
static const struct container_status *failed_sidecar(const struct pod *p, int64_t killed_left_ms, int64_t *ret_ms)
{
    for (size_t i = 0; has_sidecars(p) && i < p->n_containers; i++) {
        const struct container_status *s = &p->containers[i];
        if (s->init || !s->terminated || !s->exit_code)
            continue;
        if (!was_killed(s) || killed_left_ms <= 0)
            return s;
        *ret_ms = killed_left_ms;
    }
    return NULL;
}

static int64_t deletion_asked_ms(const struct pod *p)
{
    return p->obj.meta.deleted_ms - p->obj.meta.deletion_grace_s * 1000;
}

static int64_t ended_ms(const struct group_view *v, const struct pod *p)
{
    const struct container_status *s = culprit(p);
    return s && s->finished_ms ? MIN(s->finished_ms, v->gang.now_ms) : v->gang.now_ms;
}

static struct group_failure failure_of(const struct group_view *v, const struct pod *p, bool lost, bool deleted,
                                       int32_t index, struct arena *a)
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
    if (s && has_sidecars(p))
        f.message = arena_printf(a, "container %s%s%s", s->name, f.message ? ": " : "", f.message ? f.message : "");
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
    gang_pods_look_again(&c->pods, left);
    int64_t since = cluster_node(v->gang.cluster, p->node)->ready_changed_ms;
    if (current && (!c->silent_since_ms || since < c->silent_since_ms))
        c->silent_since_ms = since;
}

static void note_failure(struct census *c, const struct group_view *v, const struct pod *p, int32_t index,
                         int64_t killed_left_ms, struct arena *a)
{
    int64_t left = -1;
    bool failed = p->phase == POD_FAILED || (has_agent(v) && p->phase == POD_SUCCEEDED); // an agent stays to the end
    failed = failed || failed_sidecar(p, killed_left_ms, &left);
    if (left > 0 && !failed)
        gang_pods_look_again(&c->pods, left);
    bool lost = !pod_terminal(p) && census_node_lost(v, p, NULL);
    // Killed by the deletion, if it ended after that.
    bool deleted =
        p->obj.meta.deleted_ms && p->phase != POD_SUCCEEDED && (!failed || ended_ms(v, p) >= deletion_asked_ms(p));
    if (!failed && !lost && !deleted)
        return;
    c->failed[index] = true;
    c->n_failed++;
    c->displaced = c->displaced || lost || p->disruption;
    bool infrastructure = p->disruption || lost || deleted;
    int64_t began = ended_ms(v, p);
    if (lost) {
        const struct node *n = cluster_node(v->gang.cluster, p->node);
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
    c->failure = failure_of(v, p, lost, deleted, index, a);
    c->failure_began_ms = began;
    c->infrastructure = infrastructure;
}

// The first failure explains those that it caused.
static void note_process(struct census *c, const struct group_view *v, struct arena *a)
{
    const struct agent_process *p = c->crew.culprit;
    if (!p || (c->failure.time_ms && c->failure_began_ms <= p->ended_ms))
        return;
    const struct pod *pod = c->current[c->crew.culprit_index];
    c->failure = crew_failure(v, p, a);
    c->failure.pod = pod->obj.meta.name;
    c->failure.node = pod->node;
    c->failure_began_ms = p->ended_ms;
    c->infrastructure = false;
}

// Since when an agent that is not there could be: since it was lost, or since all containers of its pod run; 0 = it
// cannot be there yet.
static int64_t agent_awaited_ms(const struct pod *p, const struct agent_facts *f)
{
    int64_t since = f->changed_ms;
    for (size_t i = 0; i < p->n_containers && !f->changed_ms; i++) {
        const struct container_status *s = &p->containers[i];
        if (s->init)
            continue;
        if (!s->started_ms)
            return 0;
        since = MAX(since, s->started_ms);
    }
    return since;
}

// All pods of the view have one.
static size_t silent_agents(const struct group_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->gang.n_pods; i++)
        n += v->gang.pods[i]->phase == POD_RUNNING && !(v->agents && crew_agent_there(&v->agents[i]));
    return n;
}

enum reach_verdict census_silence(const struct group_view *v, int64_t since_ms, int64_t limit_ms, int64_t *ret_ms)
{
    since_ms = MAX(since_ms, v->leading_ms);
    return reach_verdict(&v->reach, silent_agents(v), since_ms, limit_ms, v->gang.now_ms, ret_ms);
}

// An agent that is away for so long, or has not come for so long after its start, is lost with its pod. Not so if its
// node is silent itself: then that decides; nor if the operator may be at fault.
static void note_lost_agent(struct census *c, const struct group_view *v, int32_t index)
{
    const struct pod *p = c->current[index];
    const struct agent_facts *f = c->crew.facts[index];
    const struct node *n = p->node ? cluster_node(v->gang.cluster, p->node) : NULL;
    int64_t awaited = agent_awaited_ms(p, f), since = MAX(awaited, v->leading_ms), left;
    if (crew_agent_there(f) || !awaited || !n || !n->ready || c->failed[index])
        return;
    if (v->gang.setup && pod_trusts_others(p, v->gang.setup->keys_id))
        return;
    enum reach_verdict verdict = census_silence(v, awaited, (int64_t)v->wg->spec.node_lost_s * 1000, &left);
    c->unreachable = c->unreachable || verdict == REACH_NOBODY;
    if (verdict != REACH_COUNTS) {
        gang_pods_look_again(&c->pods, left);
        return;
    }
    c->failed[index] = true;
    c->n_failed++;
    if (c->failure.time_ms && c->failure_began_ms <= since)
        return;
    c->failure = (struct group_failure){
        .rank = index * v->wg->spec.workers_per_replica,
        .pod = p->obj.meta.name,
        .node = p->node,
        .exit_code = -1,
        .reason = FAILURE_AGENT_LOST,
        .message = f->changed_ms ? "the agent of the pod has been silent for longer than placement.nodeLostSeconds"
                                 : "the pod runs, but its agent has not reached the operator within "
                                   "placement.nodeLostSeconds: its log says why",
        .time_ms = v->gang.now_ms,
    };
    c->failure_began_ms = since;
    c->infrastructure = true;
}

static void ask_agents(struct census *c, const struct group_view *v, struct arena *a)
{
    static const struct agent_facts nothing;
    const struct agent_facts **facts = arena_array(a, (size_t)c->replicas, sizeof *facts);
    for (int32_t i = 0; c->pooled && i < c->replicas; i++)
        if (c->current[i])
            facts[i] = v->agents ? &v->agents[c->pooled->berths[i].at] : &nothing;
    for (size_t i = 0; i < v->gang.n_pods && !c->pooled; i++) {
        int32_t index = pod_label_number(v->gang.pods[i], LABEL_INDEX);
        if (index >= 0 && index < c->replicas && c->current[index] == v->gang.pods[i])
            facts[index] = v->agents ? &v->agents[i] : &nothing;
    }
    crew_take(v, c->attempt, facts, &c->crew);
    for (int32_t i = 0; i < c->replicas; i++)
        if (facts[i])
            note_lost_agent(c, v, i);
    note_process(c, v, a);
    c->ready = c->crew.ready_replicas;
    c->ready_workers = c->crew.ready_workers;
}

static void count(struct census *c, const struct pod *p)
{
    gang_pods_count(&c->pods, p);
    c->ready += p->ready && p->phase == POD_RUNNING;
    c->succeeded += p->phase == POD_SUCCEEDED;
}

// Pods of an attempt or incarnation that the status does not know yet: our view of the status is older than they are.
// If it stays so, somebody has taken the status away, and then the pods' word counts.
static void note_future(struct census *c, const struct group_view *v)
{
    int32_t attempt = c->attempt, incarnation = c->incarnation;
    int64_t newest = 0;
    bool found = false;
    for (size_t i = 0; i < v->gang.n_pods && !c->pooled; i++) {
        int32_t its_attempt = pod_label_number(v->gang.pods[i], LABEL_ATTEMPT);
        int32_t its_incarnation = pod_label_number(v->gang.pods[i], LABEL_INCARNATION);
        if (its_attempt <= c->attempt && its_incarnation <= c->incarnation)
            continue;
        found = true;
        attempt = MAX(attempt, its_attempt);
        incarnation = MAX(incarnation, its_incarnation);
        newest = MAX(newest, v->gang.pods[i]->obj.meta.created_ms);
    }
    // Agents that know of a later attempt were told so by a leader whose status we have not seen yet, or that was lost.
    for (size_t i = 0; v->agents && i < v->gang.n_pods; i++)
        c->attempt = MAX(c->attempt, v->agents[i].attempt);
    c->pods.from_the_future = found && v->gang.now_ms - newest < STATUS_LOST_MS;
    if (!c->pods.from_the_future) {
        c->attempt = MAX(attempt, c->attempt);
        c->incarnation = incarnation;
    }
}

void census_take(const struct group_view *v, uint64_t spec_hash, struct arena *a, struct census *ret)
{
    const struct workergroup *wg = v->wg;
    *ret = (struct census){
        .attempt = MAX(wg->status.attempt, 1),
        .incarnation = MAX(wg->status.incarnation, 0),
        .replicas = wg->spec.replicas,
        .pods.look_again_ms = -1,
    };
    seats_prepare(ret, v, spec_hash, a);
    note_future(ret, v);
    seats_take(ret, v, spec_hash, a);
    for (size_t i = 0; i < ret->pods.n_gone; i++)
        note_silence(ret, v, ret->pods.gone[i], false);
    int64_t killed_left_ms = await_reason(ret, v);
    for (int32_t i = 0; i < ret->replicas; i++) {
        if (!ret->current[i])
            continue;
        count(ret, ret->current[i]);
        note_silence(ret, v, ret->current[i], true);
        note_failure(ret, v, ret->current[i], i, killed_left_ms, a);
    }
    ret->ready_workers = ret->ready * wg->spec.workers_per_replica;
    if (has_agent(v))
        ask_agents(ret, v, a);
    // What fails while the node of another rank is silent has most likely lost its peer.
    if (ret->failure.time_ms && ret->silent_since_ms && ret->failure_began_ms >= ret->silent_since_ms)
        ret->infrastructure = true;
    // So has what fails when the kubelet ends the pod of another: it evicts before it says so.
    if (ret->failure.time_ms && ret->crew.ending_ms && ret->failure_began_ms >= ret->crew.ending_ms)
        ret->infrastructure = true;
}

size_t census_placements(const struct census *c, struct arena *a, struct node_replicas **ret)
{
    struct map by_node = MAP_INIT;
    struct ranges *ranges = arena_array(a, (size_t)c->pods.existing, sizeof *ranges);
    struct node_replicas *out = arena_array(a, (size_t)c->pods.existing, sizeof *out);
    size_t n = 0;
    for (int32_t i = 0; i < c->replicas; i++) {
        const char *node = c->current[i] ? pod_place(c->current[i]) : NULL;
        if (!node)
            continue;
        struct ranges *r = map_get(&by_node, node);
        if (!r) {
            out[n].node = node;
            r = &ranges[n++];
            *r = RANGES_INIT;
            map_set(&by_node, node, r);
        }
        ranges_add(r, i);
    }
    for (size_t i = 0; i < n; i++) {
        out[i].replicas = ranges_take(&ranges[i], a);
    }
    map_done(&by_node);
    *ret = out;
    return n;
}
