// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/kill.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define METHOD "group.kill" // names of a class's methods have no dot

static void kill_free(struct kill *k)
{
    list_remove(&k->link);
    list_remove(&k->of_group);
    list_remove(&k->of_session);
    deadlines_del(&k->session->router->kill_deadlines, &k->deadline);
    k->session->n_kills--;
    quota_refund(k->session->quota, sizeof *k);
    free(k);
}

static void answer(struct kill *k)
{
    session_answer(k->session, k->id, "null", 4);
    k->session->router->n_results++;
    kill_free(k);
}

void kill_refuse(struct kill *k, const struct err *why)
{
    struct call_failure f;
    call_failure_from(&f, why);
    session_fail(k->session, k->id, &f, k->trace, false, false);
    kill_free(k);
}

// Beginning

static int check(const struct group *g, const struct record_header *h, const struct call_head *head, struct err *err)
{
    if (head->role)
        return err_set(err, ERR_INVALID,
                       METHOD ": the roles of a process live and die together; leave out the role to end a rank");
    if (h->rank == RECORD_GROUP)
        return err_set(err, ERR_INVALID, METHOD ": which rank? It ends one process");
    if (h->dispatch || h->execute || head->split || head->collect || head->pad)
        return err_set(err, ERR_INVALID, METHOD " takes a rank, and none of dispatch, execute, split, collect, pad");
    // A connected process of a group that takes no calls any more may hang while it ends.
    int r = group_member_at(g, h->rank) ? 0 : group_refuses(g, err);
    if (r == 0)
        r = group_serves(g, h->rank, head->attempt, err);
    if (r > 0)
        return err_set(err, ERR_UNAVAILABLE, "this replica does not know attempt %lld of %s yet; try again",
                       (long long)head->attempt, g->key);
    return r;
}

// A process may hang without a connection. The end of any process that still runs then counts.
static void choose(struct kill *k)
{
    const struct group *g = k->group;
    const struct group_rank *at = &g->ranks[k->rank];
    const struct member *m = at->member || !g->bootstrap ? at->member : group_member_at(g->bootstrap, k->rank);
    k->attempt = m ? m->attempt : 0;
    k->oldest = m ? m->attempt : at->exit_attempt + 1;
    k->newest = m ? m->attempt : MAX(at->exit_attempt + 1, g->attempt);
}

int kill_begin(struct session *s, struct group *g, const struct record_header *h, const struct call_head *head,
               struct err *err)
{
    struct router *r = s->router;
    if (check(g, h, head, err) < 0)
        return err->code;
    if (!quota_charge(s->quota, sizeof(struct kill)))
        return err_set(err, ERR_THROTTLED,
                       METHOD ": this connection's calls take %zu bytes, which is the limit; wait for some of them",
                       quota_used(s->quota));
    struct kill *k = xcalloc(1, sizeof *k);
    k->session = s;
    k->group = router_group_of(r, g);
    k->id = h->call;
    k->rank = h->rank;
    k->timeout_ms = head->timeout_ms ? head->timeout_ms : KILL_WAIT_MS;
    if (head->trace)
        memcpy(k->trace, head->trace, TRACEPARENT_LEN);
    choose(k);
    list_append(&r->kills, &k->link);
    list_append(&k->group->kills, &k->of_group);
    list_append(&s->kills, &k->of_session);
    s->n_kills++;
    deadlines_add(&r->kill_deadlines, &k->deadline, clock_mono_ms(r->config.clock) + k->timeout_ms);
    return 0;
}

struct kill *kill_find(const struct session *s, uint32_t id)
{
    LIST_FOREACH(l, &s->kills)
        if (CONTAINER_OF(l, struct kill, of_session)->id == id)
            return CONTAINER_OF(l, struct kill, of_session);
    return NULL;
}

struct kill *kill_next(struct router *r)
{
    struct list *l = list_pop(&r->kills);
    return l ? CONTAINER_OF(l, struct kill, link) : NULL;
}

// Ends

void kill_cancel(struct kill *k)
{
    struct err why = ERR_INIT;
    err_set(&why, ERR_CANCELED, METHOD "() of %s was canceled by its client; the process may still end", k->group->key);
    kill_refuse(k, &why);
}

void kills_abandon(struct session *s)
{
    LIST_FOREACH(l, &s->kills)
        kill_free(CONTAINER_OF(l, struct kill, of_session));
}

void router_kill_refused(struct router *r, const char *group_uid, uint32_t rank, const char *why)
{
    struct group *g = map_get(&r->by_uid, group_uid);
    struct err err = ERR_INIT;
    if (!g)
        return;
    err_set(&err, ERR_UNAVAILABLE, "rank %u of %s was not killed: %s", rank, g->key, why);
    LIST_FOREACH(l, &g->kills) {
        struct kill *k = CONTAINER_OF(l, struct kill, of_group);
        if (k->rank == rank)
            kill_refuse(k, &err);
    }
}

void kill_ended(struct group *g, uint32_t rank, uint32_t attempt)
{
    LIST_FOREACH(l, &g->kills) {
        struct kill *k = CONTAINER_OF(l, struct kill, of_group);
        if (k->rank == rank && k->oldest <= attempt)
            answer(k);
    }
}

void kills_outdated(struct group *g, uint32_t rank, uint32_t attempt)
{
    LIST_FOREACH(l, &g->kills) {
        struct kill *k = CONTAINER_OF(l, struct kill, of_group);
        if ((rank == RECORD_GROUP || k->rank == rank) && k->newest < attempt)
            answer(k);
    }
}

void kills_group_ends(struct group *g)
{
    struct err why = ERR_INIT;
    err_set(&why, ERR_GONE, "%s was deleted while " METHOD "() was pending", g->key);
    LIST_FOREACH(l, &g->kills)
        kill_refuse(CONTAINER_OF(l, struct kill, of_group), &why);
}

void kills_tick(struct router *r, int64_t now_ms, unsigned work)
{
    for (struct deadline *first; work && (first = deadlines_first(&r->kill_deadlines)) && first->at <= now_ms; work--) {
        struct kill *k = CONTAINER_OF(first, struct kill, deadline);
        struct err why = ERR_INIT;
        err_set(&why, ERR_TIMEOUT,
                METHOD "() of %s: not done within %lld ms: the agent of rank %u has not reported the end of the "
                       "process, which may still be killed",
                k->group->key, (long long)k->timeout_ms, k->rank);
        kill_refuse(k, &why);
    }
}
