// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/peers.h"

#include "common/base/mem.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/running_spec.h"

enum { PEERS_MAX = 16 }; // one would be enough, but some connections may be dead without being known as dead

struct reach peers_reach(const struct peers *p, size_t expected, int64_t listening_ms, struct arena *a)
{
    struct connected_peer *agents = arena_array(a, PEERS_MAX, sizeof *agents);
    struct connected_peer *replicas = arena_array(a, PEERS_MAX, sizeof *replicas);
    return (struct reach){
        .listening_ms = listening_ms,
        .expected = expected,
        .agents = agents,
        .n_agents = p->agents ? agents_longest_connected(p->agents, agents, PEERS_MAX) : 0,
        .replicas = replicas,
        .n_replicas = p->reports ? replica_reports_connected(p->reports, replicas, PEERS_MAX) : 0,
    };
}

const struct agent_facts *peers_agents(const struct peers *p, const struct workergroup *wg,
                                       const struct pod *const *pods, size_t n, struct arena *a)
{
    struct agent_facts *facts = arena_array(a, n, sizeof *facts);
    for (size_t i = 0; i < n && p->agents; i++) {
        const char *uid = pods[i]->obj.meta.uid;
        agents_facts(p->agents, uid, wg->obj.meta.uid, a, &facts[i]);
        facts[i].seen_by = p->reports ? arena_strdup(a, replica_reports_agent(p->reports, uid)) : NULL;
    }
    return facts;
}

const int32_t *peers_members(const struct peers *p, const struct group_view *v, struct arena *a)
{
    const struct workergroup *wg = v->wg;
    size_t world = (size_t)MAX(group_world_size(wg), v->as_running ? group_world_size(v->as_running) : 0);
    int32_t *members = arena_array(a, world, sizeof *members);
    const struct group *g = p->router ? router_group(p->router, wg->obj.meta.uid) : NULL;
    for (size_t rank = 0; g && rank < MIN(world, (size_t)g->world); rank++)
        if (g->ranks[rank].member)
            members[rank] = (int32_t)g->ranks[rank].member->attempt;
    if (p->reports)
        replica_reports_members(p->reports, wg->obj.meta.uid, members, world);
    return members;
}

const struct pod *peers_own_pod(const struct store *of_pods, const struct workergroup *wg, uint32_t rank,
                                struct arena *a)
{
    const struct object *const *pods;
    const struct pod *found = NULL;
    size_t n = store_by_owner(of_pods, &wg->obj.meta, a, &pods);
    const struct workergroup *before = running_spec(wg, a);
    int64_t index = rank / MAX((before ? before : wg)->spec.workers_per_replica, 1);
    int32_t newest = -1;
    for (size_t i = 0; i < n; i++) {
        const struct pod *p = pod_of(pods[i]);
        int32_t incarnation = pod_label_number(p, LABEL_INCARNATION);
        if (pod_label_number(p, LABEL_INDEX) != index || incarnation <= newest)
            continue;
        newest = incarnation;
        found = p;
    }
    return found;
}
