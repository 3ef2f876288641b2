// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/group_pods.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/pod_failure.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <inttypes.h>

enum { KILLED_MS = 60 * 1000 }; // time for a kubelet to explain why it ends a pod

static bool node_lost(const struct group_view *v, const struct pod *p, int64_t *ret_ms)
{
    return pod_node_gone(v->gang.cluster, p, group_bundles_node_lost_s(v, p), v->gang.now_ms, ret_ms);
}

// The kubelet ends the containers of a pod that it evicts one by one, and gives the reason only then. So a container
// that the kubelet may have killed counts as failed only after a while. Returns the rest of that time, for the
// container that was killed first.
static int64_t await_reason(struct group_pods *c, const struct group_view *v)
{
    int64_t first_ms = 0;
    for (int32_t i = 0; i < c->replicas; i++) {
        int64_t ms = c->current[i] ? pod_failure_killed_ms(c->current[i]) : 0;
        if (ms && (!first_ms || ms < first_ms))
            first_ms = ms;
    }
    if (!first_ms)
        return 0;
    return wait_of(v->gang.memory, WAIT_KILLED, first_ms, first_ms, KILLED_MS, v->gang.now_ms, &c->killed);
}

static int64_t deletion_asked_ms(const struct pod *p)
{
    return p->obj.meta.deleted_ms - p->obj.meta.deletion_grace_s * 1000;
}

static void note_silence(struct group_pods *c, const struct group_view *v, const struct pod *p, bool current)
{
    int64_t left = -1;
    bool awaited = !pod_terminal(p) || p->obj.meta.deleted_ms;
    if (!awaited || node_lost(v, p, &left) || left < 0)
        return;
    gang_pods_look_again(&c->gang, left);
    int64_t since = cluster_node(v->gang.cluster, p->node)->ready_changed_ms;
    if (current && (!c->silent_since_ms || since < c->silent_since_ms))
        c->silent_since_ms = since;
}

static void note_failure(struct group_pods *c, const struct group_view *v, const struct pod *p, int32_t index,
                         int64_t killed_left_ms, struct arena *a)
{
    int64_t left = -1;
    bool failed = p->phase == POD_FAILED ||
                  (workergroup_has_agent(v->wg) && p->phase == POD_SUCCEEDED); // an agent stays to the end
    failed = failed || pod_failure_of_sidecar(p, killed_left_ms, &left);
    if (left > 0 && !failed)
        gang_pods_look_again(&c->gang, left);
    bool lost = !pod_terminal(p) && node_lost(v, p, NULL);
    // If the pod ended after the deletion, the deletion killed it.
    bool deleted = p->obj.meta.deleted_ms && p->phase != POD_SUCCEEDED &&
                   (!failed || pod_failure_ms(p, v->gang.now_ms) >= deletion_asked_ms(p));
    if (!failed && !lost && !deleted)
        return;
    c->failed[index] = true;
    c->n_failed++;
    c->displaced = c->displaced || lost || p->disruption;
    bool infrastructure = p->disruption || lost || deleted;
    int64_t began = pod_failure_ms(p, v->gang.now_ms);
    if (lost) {
        const struct node *n = cluster_node(v->gang.cluster, p->node);
        began = n ? n->ready_changed_ms : 0;
    } else if (deleted) {
        began = deletion_asked_ms(p);
    }
    // The first failure explains the later ones. Kubernetes' clock counts whole seconds: within one second, a failure
    // of the infrastructure is the likelier cause.
    bool first = !c->failure.time_ms || began < c->failure_began_ms ||
                 (began == c->failure_began_ms && infrastructure && !c->infrastructure);
    if (!first)
        return;
    c->failure = pod_failure_describe(p, lost, deleted, v->gang.now_ms, a);
    c->failure.rank = index * v->wg->spec.workers_per_replica;
    c->failure_began_ms = began;
    c->infrastructure = infrastructure;
}

// The first failure explains the later ones.
static void note_process(struct group_pods *c, const struct group_view *v, struct arena *a)
{
    const struct agent_process *p = c->ranks.culprit;
    if (!p || (c->failure.time_ms && c->failure_began_ms <= p->ended_ms))
        return;
    const struct pod *pod = c->current[c->ranks.culprit_index];
    c->failure = ranks_failure(v, p, a);
    c->failure.pod = pod->obj.meta.name;
    c->failure.node = pod->node;
    c->failure_began_ms = p->ended_ms;
    c->infrastructure = false;
}

// Since when an absent agent could be connected: since its connection was lost, or since all containers of its pod run.
// 0 = it cannot be connected yet.
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

// All pods of the view have an agent.
static size_t silent_agents(const struct group_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->gang.n_pods; i++)
        n += v->gang.pods[i]->phase == POD_RUNNING && !(v->agents && ranks_agent_there(&v->agents[i]));
    return n;
}

enum reach_verdict group_pods_silence(const struct group_view *v, int64_t since_ms, int64_t limit_ms, int64_t *ret_ms)
{
    since_ms = MAX(since_ms, v->leading_ms);
    return reach_verdict(&v->reach, silent_agents(v), since_ms, limit_ms, v->gang.now_ms, ret_ms);
}

// Sets a failure of the infrastructure, which has no exit code.
static void set_failure(struct group_pods *c, const struct group_view *v, int32_t index, int32_t rank,
                        const char *reason, const char *message, int64_t began_ms)
{
    c->failure = (struct group_failure){
        .rank = rank,
        .pod = c->current[index]->obj.meta.name,
        .node = c->current[index]->node,
        .exit_code = -1,
        .reason = reason,
        .message = message,
        .time_ms = v->gang.now_ms,
    };
    c->failure_began_ms = began_ms;
    c->infrastructure = true;
}

// If an agent is absent for nodeLostSeconds, or has not connected within nodeLostSeconds of its start, it is lost with
// its pod. There are two exceptions. If its node is silent too, the state of the node decides. If the operator may be
// at fault, nothing is lost.
static void note_lost_agent(struct group_pods *c, const struct group_view *v, int32_t index)
{
    const struct pod *p = c->current[index];
    const struct agent_facts *f = c->ranks.facts[index];
    const struct node *n = p->node ? cluster_node(v->gang.cluster, p->node) : NULL;
    int64_t awaited = agent_awaited_ms(p, f), since = MAX(awaited, v->leading_ms), left;
    if (ranks_agent_there(f) || !awaited || !n || !n->ready || c->failed[index])
        return;
    if (v->gang.setup && pod_trusts_others(p, v->gang.setup->keys_id))
        return;
    int64_t limit_ms = (int64_t)group_bundles_node_lost_s(v, p) * 1000;
    enum reach_verdict verdict = group_pods_silence(v, awaited, limit_ms, &left);
    c->unreachable = c->unreachable || verdict == REACH_NOBODY;
    if (verdict != REACH_COUNTS) {
        gang_pods_look_again(&c->gang, left);
        return;
    }
    c->failed[index] = true;
    c->n_failed++;
    if (!c->failure.time_ms || c->failure_began_ms > since)
        set_failure(c, v, index, index * v->wg->spec.workers_per_replica, FAILURE_AGENT_LOST,
                    f->changed_ms ? "the agent of the pod has been silent for longer than placement.nodeLostSeconds"
                                  : "the pod runs, but its agent has not reached the operator within "
                                    "placement.nodeLostSeconds: its log says why",
                    since);
}

// The processes cannot go on with a lost GPU, and only a reset of the node brings it back. On bundles, only the pod of
// the GPU goes: the PlacementGroup plans it again, elsewhere if it can, and the other pods stay.
static void note_lost_gpu(struct group_pods *c, const struct group_view *v, int32_t index, struct arena *a)
{
    const struct pod *p = c->current[index];
    const struct agent_gpu *g = &c->ranks.facts[index]->lost;
    if (!g->uuid || !group_pods_leads(c, index))
        return;
    const char *xid = g->xid ? arena_printf(a, " (Xid %" PRId64 ")", g->xid) : "";
    const char *node = p->node ? p->node : "?";
    const char *what =
        arena_printf(a, "GPU %s (%s) of rank %d on node %s fell off the bus%s", g->uuid, g->name, g->rank, node, xid);
    if (!c->gpu_lost) {
        c->gpu_lost = what;
        c->gpu_lost_on = p->node;
    }
    if (c->failed[index])
        return;
    c->failed[index] = true;
    c->n_failed++;
    c->displaced = c->displaced || !c->bundles;
    if (!c->failure.time_ms || !c->infrastructure)
        set_failure(c, v, index, g->rank, FAILURE_GPU_LOST, what, v->gang.now_ms);
}

static void ask_agents(struct group_pods *c, const struct group_view *v, struct arena *a)
{
    static const struct agent_facts nothing;
    const struct agent_facts **facts = arena_array(a, (size_t)c->replicas, sizeof *facts);
    for (int32_t i = 0; c->bundles && i < c->replicas; i++)
        if (c->current[i])
            facts[i] = v->agents ? &v->agents[c->bundles->replicas[i].at] : &nothing;
    for (size_t i = 0; i < v->gang.n_pods && !c->bundles; i++) {
        int32_t index = pod_label_number(v->gang.pods[i], LABEL_INDEX);
        if (index >= 0 && index < c->replicas && c->current[index] == v->gang.pods[i])
            facts[index] = v->agents ? &v->agents[i] : &nothing;
    }
    ranks_take(v, c->gang.attempt, facts, &c->ranks);
    for (int32_t i = 0; i < c->replicas; i++)
        if (facts[i])
            note_lost_agent(c, v, i);
    note_process(c, v, a);
    for (int32_t i = 0; i < c->replicas; i++)
        if (facts[i])
            note_lost_gpu(c, v, i, a); // a lost GPU explains the exit codes of its processes
    c->ready = c->ranks.ready_replicas;
    c->ready_workers = c->ranks.ready_workers;
}

// If an agent knows a later attempt, it heard of it from a leader whose status we have not seen yet, or whose status
// was lost.
static void look_ahead(struct group_pods *c, const struct group_view *v)
{
    if (!c->bundles) // otherwise the pods belong to PlacementGroups
        gang_pods_look_ahead(&c->gang, &v->gang);
    for (size_t i = 0; v->agents && i < v->gang.n_pods; i++)
        c->gang.attempt = MAX(c->gang.attempt, v->agents[i].attempt);
}

// The entry of `current` for a pod of ours, NULL if the pod does not belong to the present set. If somebody has made a
// copy of a pod, the copy has the labels, but not the name.
static const struct pod **entry_of(struct group_pods *c, const struct group_view *v, const struct pod *p, int32_t index,
                                   struct arena *a)
{
    if (index < 0 || index >= c->replicas)
        return NULL;
    const struct pod **entry = &c->current[index];
    if (*entry && !str_eq(p->obj.meta.name, group_pod_name(v->wg, index, c->gang.incarnation, a)))
        return NULL;
    if (*entry)
        c->gang.gone[c->gang.n_gone++] = *entry;
    return entry;
}

static bool alive(const struct group_view *v, const struct pod *p)
{
    return !p->obj.meta.deleted_ms && !pod_terminal(p) && !node_lost(v, p, NULL);
}

static bool is_copy(const struct group_view *v, const struct pod *p, int32_t index, int32_t incarnation,
                    struct arena *a)
{
    return !str_eq(p->obj.meta.name, group_pod_name(v->wg, index, incarnation, a));
}

// The head of group_pods.h explains the rules.
static void sort_agent_pods(struct group_pods *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++)
        if (pod_label_number(v->gang.pods[i], LABEL_INCARNATION) == c->gang.incarnation)
            c->begun = true;
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        int32_t index = pod_label_number(p, LABEL_INDEX), incarnation = pod_label_number(p, LABEL_INCARNATION);
        bool same = pod_spec_hash(p) == spec_hash;
        bool counts = index >= 0 && incarnation >= 0 && !is_copy(v, p, index, incarnation, a) &&
                      (c->begun || (same && alive(v, p)));
        c->mine += counts;
        c->changed = c->changed || (counts && !same);
        const struct pod **entry = counts && index < c->replicas ? &c->current[index] : NULL;
        if (entry && *entry && pod_label_number(*entry, LABEL_INCARNATION) > incarnation)
            entry = NULL;
        const struct pod *stale = entry ? *entry : p;
        if (stale)
            c->gang.gone[c->gang.n_gone++] = stale;
        if (entry)
            *entry = p;
    }
}

static void sort_pods(struct group_pods *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        bool mine = pod_label_number(p, LABEL_ATTEMPT) == c->gang.attempt &&
                    pod_label_number(p, LABEL_INCARNATION) == c->gang.incarnation;
        c->mine += mine;
        c->begun = c->begun || mine;
        if (mine && pod_spec_hash(p) != spec_hash)
            c->changed = true;
        const struct pod **entry = mine ? entry_of(c, v, p, pod_label_number(p, LABEL_INDEX), a) : NULL;
        if (entry)
            *entry = p;
        else
            c->gang.gone[c->gang.n_gone++] = p;
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
    return was && was_bound(wg) && !str_eq(was, group_hash_text(spec_hash, a));
}

// The pods belong to PlacementGroups, and say nothing about the group. Its status says what its processes were started
// from.
static void take_from_bundles(struct group_pods *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    for (int32_t i = 0; i < c->replicas; i++) {
        c->current[i] = c->bundles->replicas[i].pod;
        c->mine += c->current[i] != NULL;
    }
    c->changed = is_revised(v->wg, spec_hash, a);
}

static void find_bundles(struct group_pods *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    if (!v->wg->spec.n_placement_groups)
        return;
    struct group_bundles *bundles = arena_new(a, struct group_bundles);
    group_bundles_take(v, was_bound(v->wg) && !is_revised(v->wg, spec_hash, a), a, bundles);
    c->bundles = bundles;
}

static void find_pods(struct group_pods *c, const struct group_view *v, uint64_t spec_hash, struct arena *a)
{
    c->current = arena_array(a, (size_t)c->replicas, sizeof *c->current);
    c->gang.live = c->current;
    c->gang.n_live = (size_t)c->replicas;
    c->failed = arena_array(a, (size_t)c->replicas, sizeof *c->failed);
    c->gang.gone = arena_array(a, v->gang.n_pods, sizeof *c->gang.gone);
    if (c->bundles)
        take_from_bundles(c, v, spec_hash, a);
    else if (workergroup_has_agent(v->wg))
        sort_agent_pods(c, v, spec_hash, a);
    else
        sort_pods(c, v, spec_hash, a);
}

void group_pods_take(const struct group_view *v, uint64_t spec_hash, struct arena *a, struct group_pods *ret)
{
    const struct workergroup *wg = v->wg;
    *ret = (struct group_pods){
        .replicas = wg->spec.replicas,
        .gang.attempt = MAX(wg->status.attempt, 1),
        .gang.incarnation = MAX(wg->status.incarnation, 0),
        .gang.look_again_ms = -1,
    };
    find_bundles(ret, v, spec_hash, a);
    look_ahead(ret, v);
    find_pods(ret, v, spec_hash, a);
    for (size_t i = 0; i < ret->gang.n_gone; i++)
        note_silence(ret, v, ret->gang.gone[i], false);
    int64_t killed_left_ms = await_reason(ret, v);
    for (int32_t i = 0; i < ret->replicas; i++) {
        if (!ret->current[i])
            continue;
        gang_pods_count(&ret->gang, &v->gang, ret->current[i]);
        ret->succeeded += ret->current[i]->phase == POD_SUCCEEDED;
        note_silence(ret, v, ret->current[i], true);
        note_failure(ret, v, ret->current[i], i, killed_left_ms, a);
    }
    ret->ready = ret->gang.ready;
    ret->ready_workers = ret->ready * wg->spec.workers_per_replica;
    if (workergroup_has_agent(v->wg))
        ask_agents(ret, v, a);
    // If a rank fails while the node of another rank is silent, it has most likely lost its peer.
    if (ret->failure.time_ms && ret->silent_since_ms && ret->failure_began_ms >= ret->silent_since_ms)
        ret->infrastructure = true;
    // The same is true while the kubelet ends the pod of another rank: it evicts first, and gives the reason later.
    if (ret->failure.time_ms && ret->ranks.ending_ms && ret->failure_began_ms >= ret->ranks.ending_ms)
        ret->infrastructure = true;
}
