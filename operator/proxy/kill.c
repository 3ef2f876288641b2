// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/kill.h"

bool kill_is(const struct head *head)
{
    return head_method_is(head, "group.kill"); // no method of a class has a dot in its name
}

int kill_check(const struct record_header *h, const struct head *head, struct err *err)
{
    if (head->role)
        return err_set(err, ERR_INVALID,
                       "group.kill: the roles of a process live and die together; leave out the role to end a rank");
    if (h->rank == RECORD_GROUP)
        return err_set(err, ERR_INVALID, "group.kill: which rank? It ends one process");
    if (h->dispatch || h->execute || head->split || head->collect || head->pad)
        return err_set(err, ERR_INVALID, "group.kill takes a rank, and none of dispatch, execute, split, collect, pad");
    return 0;
}

bool kill_reaches(const struct call *c)
{
    return c->kill && c->rank < c->group->world && c->group->ranks[c->rank].member;
}

void kill_begin(struct call *c)
{
    struct err err = ERR_INIT;
    c->kill = true;
    int r = call_check_group(c, &err);
    if (r > 0)
        err_set(&err, ERR_UNAVAILABLE, "attempt %lld of %s is not known here yet; try again", (long long)c->attempt,
                c->group->key);
    if (err.code) {
        kill_refuse(c, &err);
        return;
    }
    // Who is not connected may be there all the same, and hang: then any process counts that has not ended by now.
    const struct group_rank *at = &c->group->ranks[c->rank];
    c->kill_attempt = at->member ? at->member->attempt : 0;
    c->kill_oldest = at->member ? at->member->attempt : at->exit_attempt + 1;
    c->kill_newest = at->member ? at->member->attempt : MAX(at->exit_attempt + 1, c->group->attempt);
    list_append(&c->router->kills, &c->link);
}

struct call *kill_next(struct router *r, struct kill_order *ret)
{
    struct list *l = list_pop(&r->kills);
    if (!l)
        return NULL;
    struct call *c = CONTAINER_OF(l, struct call, link);
    list_append(&c->group->kills, &c->link);
    *ret = (struct kill_order){c->group->uid, c->group->key, c->kill_attempt, c->rank};
    return c;
}

void kill_refuse(struct call *c, const struct err *why)
{
    struct failure f;
    failure_from(&f, why);
    call_fail(c, &f);
}

void router_kill_refused(struct router *r, const char *group_uid, uint32_t rank, const char *why)
{
    struct group *g = map_get(&r->by_uid, group_uid);
    if (!g)
        return;
    LIST_FOREACH(l, &g->kills) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->rank == rank)
            call_refuse(c, ERR_UNAVAILABLE, "rank %u of %s was not killed: %s", rank, g->key, why);
    }
}

static void answer(struct call *c)
{
    struct record_header h = {.type = RECORD_RESULT, .call = c->caller_id, .rank = RECORD_GROUP};
    call_answer_copy(c, &h, "null", 4);
}

void kill_ended(struct group *g, uint32_t rank, uint32_t attempt)
{
    LIST_FOREACH(l, &g->kills) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->rank == rank && c->kill_oldest <= attempt)
            answer(c);
    }
}

void kill_replaced(struct group *g, uint32_t rank, uint32_t attempt)
{
    LIST_FOREACH(l, &g->kills) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->rank == rank && c->kill_newest < attempt)
            answer(c);
    }
}

void kill_outdated(struct group *g)
{
    LIST_FOREACH(l, &g->kills) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kill_newest < g->oldest)
            answer(c);
    }
}
