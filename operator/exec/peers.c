// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/peers.h"

#include "common/base/mem.h"
#include "operator/reconcile/names.h"

enum { WITNESSES = 16 }; // one would do; the connections of some may be dead, and not known to be

struct reach peers_reach(const struct agents *agents, size_t expected, int64_t listening_ms, struct arena *a)
{
    struct agent_witness *all = arena_array(a, WITNESSES, sizeof *all);
    return (struct reach){
        .listening_ms = listening_ms,
        .expected = expected,
        .agents = all,
        .n_agents = agents ? agents_witnesses(agents, all, WITNESSES) : 0,
    };
}

const struct agent_facts *peers_agents(const struct agents *agents, const struct workergroup *wg,
                                       const struct pod *const *pods, size_t n, struct arena *a)
{
    struct agent_facts *facts = arena_array(a, n, sizeof *facts);
    for (size_t i = 0; i < n && agents; i++)
        agents_facts(agents, pods[i]->obj.meta.uid, wg->obj.meta.uid, a, &facts[i]);
    return facts;
}

const int32_t *peers_members(const struct router *router, const struct group_view *v, struct arena *a)
{
    const struct workergroup *wg = v->wg;
    size_t world = (size_t)MAX(group_world_size(wg), v->before ? group_world_size(v->before) : 0);
    int32_t *members = arena_array(a, world, sizeof *members);
    const struct group *g = router ? router_group(router, wg->obj.meta.uid) : NULL;
    for (size_t rank = 0; g && rank < MIN(world, (size_t)g->world); rank++)
        if (g->ranks[rank].member)
            members[rank] = (int32_t)g->ranks[rank].member->attempt;
    return members;
}
