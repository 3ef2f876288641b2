// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/request.h"

#include "operator/proxy/task.h"
#include "operator/proxy/wait_queue.h"

#include <string.h>

static void put_text(char *out, const char *text, size_t len)
{
    if (len)
        memcpy(out, text, len);
    out[len] = '\0';
}

void request_read(const struct record_header *h, const struct call_head *head, const struct group *g,
                  struct request *ret)
{
    memset(ret, 0, offsetof(struct request, method));
    ret->id = h->call;
    ret->rank = h->rank;
    ret->dispatch = h->dispatch;
    ret->execute = h->execute;
    ret->quiet = h->flags & RECORD_QUIET;
    ret->refuse = head->refuse;
    ret->ruled = head->split || head->collect;
    ret->pad = head->pad;
    ret->positional = head->positional;
    ret->keep = head->keep;
    ret->pin = head->pin;
    ret->attempt = head->attempt;
    ret->timeout_ms = head->timeout_ms;
    ret->world = g->world;
    ret->n_above = task_above(g, head);
    put_text(ret->method, head->method, head->method_len);
    put_text(ret->role, head->role, head->role_len);
    put_text(ret->trace, head->trace, head->trace ? TRACEPARENT_LEN : 0);
}

static bool is_single(const struct request *q)
{
    return q->rank != RECORD_GROUP || q->execute == RECORD_RANK_ZERO || q->execute == RECORD_ANY;
}

uint32_t request_ranks(const struct request *q)
{
    return is_single(q) ? 1 : q->world;
}

static int no_method(const struct request *q, const struct group *g, const struct member_role *role, struct err *err)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(512);
    for (size_t i = 0; i < role->n_methods && !names.over; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", role->methods[i].name);
    return err_set(err, ERR_NOT_FOUND, "%s%s%s has no method '%s'; it has: %s%s", role->name ? role->name : "",
                   role->name ? " of " : "", g->key, q->method, role->n_methods ? buf_str(&names) : "none",
                   names.over ? ", ..." : "");
}

static int no_role(const struct request *q, const struct group *g, const struct member *m, struct err *err)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(2048);
    for (size_t i = 0; i < m->n_roles && m->roles[i].name; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", m->roles[i].name);
    if (!names.len)
        return err_set(err, ERR_NOT_FOUND, "%s has no role '%s': the group has no roles; leave the role out", g->key,
                       q->role);
    if (q->role[0])
        return err_set(err, ERR_NOT_FOUND, "%s has no role '%s'; it has: %s", g->key, q->role, buf_str(&names));
    return err_set(err, ERR_INVALID, "%s has several roles: set the role of the call of %s() to one of them: %s",
                   g->key, q->method, buf_str(&names));
}

// The method's registration gives the modes that the client left open.
static int resolve_modes(struct request *q, const struct group *g, struct err *err)
{
    const struct member *first = group_first(g);
    if (q->rank != RECORD_GROUP || (q->dispatch && q->execute) || q->execute == RECORD_RANK_ZERO ||
        q->execute == RECORD_ANY)
        return VERDICT_GO;
    if (!first)
        return VERDICT_WAIT;
    const struct member_role *role = member_role(first, q->role);
    if (!role)
        return no_role(q, g, first, err);
    const struct member_method *method = member_method(role, q->method);
    if (!method && !q->dispatch)
        return no_method(q, g, role, err);
    if (!q->dispatch)
        q->dispatch = method->dispatch;
    if (!q->execute)
        q->execute = method ? method->execute : RECORD_ALL;
    return VERDICT_GO;
}

// A call of one rank gives that rank the arguments as they are.
static int check_modes(struct request *q, struct err *err)
{
    q->single = is_single(q);
    if (q->single && (q->ruled || q->pad))
        return err_set(err, ERR_INVALID, "%s(): only one rank runs the call; leave out split, collect and pad",
                       q->method);
    return VERDICT_GO;
}

// Returns 0 if the group takes the request: its attempt and its ranks exist. VERDICT_WAIT: not yet.
static int check_group(const struct request *q, const struct group *g, struct err *err)
{
    int r = group_refuses(g, err);
    if (r == 0 && q->world != g->world)
        r = err_set(err, ERR_CONFLICT, "%s had %u ranks when the call came and has %u now; call again", g->key,
                    q->world, g->world);
    if (r == 0)
        r = group_serves(g, q->rank, q->attempt, err);
    return r > 0 ? VERDICT_WAIT : r;
}

// Methods of the proxy and the host, such as object.put, have a dot. Names of a class's methods have none.
static bool is_own(const struct request *q)
{
    return strchr(q->method, '.') != NULL;
}

static int pick_any(struct request *q, const struct group *g, bool queued, struct err *err)
{
    const struct member *first = group_first(g);
    if (!first)
        return VERDICT_WAIT;
    if (is_own(q)) {
        q->lane = MEMBER_LANE_NONE;
        return task_pick(g, q->lane, queued, &q->first) ? VERDICT_GO : VERDICT_WAIT;
    }
    const struct member_role *role = member_role(first, q->role);
    const struct member_method *method = role ? member_method(role, q->method) : NULL;
    if (!role)
        return no_role(q, g, first, err);
    if (!method)
        return no_method(q, g, role, err);
    q->lane = method->lane;
    q->again = method->idempotent;
    if (task_stuck(g, q->lane, q->n_above))
        return err_set(
            err, ERR_CONFLICT,
            "a deadlock: %s() waits for a slot of %s, and all slots are taken by methods that wait for this call",
            q->method, g->key);
    return task_pick(g, q->lane, queued, &q->first) ? VERDICT_GO : VERDICT_QUEUE;
}

// The ranks are known, and all of them are connected.
static void look_up(struct request *q, const struct group *g)
{
    const struct member_method *method = member_method_of(g->ranks[q->first].member, q->role, q->method);
    q->lane = method ? method->lane : is_own(q) ? MEMBER_LANE_NONE : 0;
    q->again = method && method->idempotent;
}

static int pick_ranks(struct request *q, const struct group *g, bool queued, struct err *err)
{
    if (q->execute == RECORD_ANY && q->rank == RECORD_GROUP)
        return pick_any(q, g, queued, err);
    q->first = q->rank != RECORD_GROUP ? q->rank : 0;
    if (group_missing(g, q->first, q->single ? 1 : q->world) < g->world)
        return VERDICT_WAIT;
    look_up(q, g);
    return VERDICT_GO;
}

int request_resolve(struct request *q, const struct group *g, const struct session *s, bool queued, struct err *err)
{
    int r = check_group(q, g, err);
    if (r == VERDICT_GO)
        r = resolve_modes(q, g, err);
    if (r == VERDICT_GO)
        r = check_modes(q, err);
    if (r == VERDICT_GO)
        r = pick_ranks(q, g, queued, err);
    // Calls of one client to one rank run in the order in which they were sent: none passes an earlier one that waits.
    return r >= 0 && r != VERDICT_WAIT && s && wait_queue_first(g, s) ? VERDICT_WAIT : r;
}

void request_explain_wait(const struct request *q, const struct group *g, struct buf *out)
{
    if (q->attempt > g->attempt)
        buf_printf(out, "the call is for attempt %lld of %s, but the group is at attempt %u", (long long)q->attempt,
                   g->key, g->attempt);
    else
        group_explain(g, out);
}
