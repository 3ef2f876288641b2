// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch.h"
#include "common/wire/mode.h"
#include "operator/proxy/cut.h"
#include "operator/proxy/deal.h"
#include "operator/proxy/object.h"
#include "operator/proxy/split.h"
#include "operator/proxy/stall.h"
#include "operator/proxy/stream.h"
#include "operator/proxy/task.h"

#include <string.h>

#define COPY_MAX ((size_t)1 << 10)    // a body up to this is rather copied for each rank than shared by them
#define LASTING_MIN ((size_t)2 << 10) // a longer one may go out in several records, others between them

enum { GO, WAIT, QUEUE }; // now, for the group, for a slot; else a negative error

static int no_method(const struct call *c, const struct member_role *role, struct err *err)
{
    struct buf names = BUF_INIT(512);
    for (size_t i = 0; i < role->n_methods && !names.over; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", role->methods[i].name);
    err_set(err, ERR_NOT_FOUND, "%s%s%s has no method '%s'; it has: %s%s", role->name ? role->name : "",
            role->name ? " of " : "", c->group->key, c->method, role->n_methods ? buf_str(&names) : "none",
            names.over ? ", ..." : "");
    buf_done(&names);
    return err->code;
}

static int no_role(const struct call *c, const struct member *m, struct err *err)
{
    struct buf names = BUF_INIT(2048);
    for (size_t i = 0; i < m->n_roles && m->roles[i].name; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", m->roles[i].name);
    if (!names.len)
        err_set(err, ERR_NOT_FOUND, "%s has no role '%s': it has no roles, leave it out", c->group->key, c->role);
    else if (c->role[0])
        err_set(err, ERR_NOT_FOUND, "%s has no role '%s'; it has: %s", c->group->key, c->role, buf_str(&names));
    else
        err_set(err, ERR_INVALID, "%s has several roles: the call of %s() says which one (role): %s", c->group->key,
                c->method, buf_str(&names));
    buf_done(&names);
    return err->code;
}

// The modes that the caller left open are those that the method was registered with.
static int resolve_modes(struct call *c, struct err *err)
{
    const struct member *first = group_first(c->group);
    if (c->rank != RECORD_GROUP || (c->dispatch && c->execute) || c->execute == RECORD_RANK_ZERO ||
        c->execute == RECORD_ANY)
        return GO;
    if (!first)
        return WAIT;
    const struct member_role *role = member_role(first, c->role);
    if (!role)
        return no_role(c, first, err);
    const struct member_method *method = member_method(role, c->method);
    if (!method && !c->dispatch)
        return no_method(c, role, err);
    if (!c->dispatch)
        c->dispatch = method->dispatch;
    if (!c->execute)
        c->execute = method ? method->execute : RECORD_ALL;
    return GO;
}

// Whom one rank gets them, gets the arguments as they are.
static int check_modes(struct call *c, struct err *err)
{
    c->single = c->rank != RECORD_GROUP || c->execute == RECORD_RANK_ZERO || c->execute == RECORD_ANY;
    if (c->single && (c->ruled || c->pad))
        return err_set(err, ERR_INVALID, "%s(): one rank runs it, there is nothing to split, collect or pad",
                       c->method);
    return GO;
}

// Whether its group takes it, as far as attempt and ranks go.
static int check_group(const struct call *c, struct err *err)
{
    const struct group *g = c->group;
    int r = group_refuses(g, err);
    if (r == 0 && c->world != g->world)
        r = err_set(err, ERR_CONFLICT, "%s had %u ranks when the call came and has %u now; call again", g->key,
                    c->world, g->world);
    if (r == 0)
        r = group_serves(g, c->rank, c->attempt, err);
    return r > 0 ? WAIT : r;
}

// Per caller and rank calls run in the order sent: none passes an earlier one that waits.
static bool behind_another(const struct call *c)
{
    const struct list *waiting = &c->group->waiting;
    if (c->state == CALL_WAITING || c->state == CALL_QUEUED) // asked by the router, which goes through all in order
        return false;
    for (const struct list *l = waiting->prev; l != waiting; l = l->prev)
        if (CONTAINER_OF(l, struct call, link)->session == c->session)
            return true;
    return false;
}

// Of the proxy's and the host's own methods, such as object.put: no method of a class has a dot in its name.
static bool is_own(const struct call *c)
{
    return strchr(c->method, '.') != NULL;
}

static int pick_any(struct call *c, struct err *err)
{
    const struct member *first = group_first(c->group);
    if (!first)
        return WAIT;
    if (is_own(c)) {
        c->lane = MEMBER_LANE_NONE;
        return task_pick(c) ? GO : WAIT;
    }
    const struct member_role *role = member_role(first, c->role);
    const struct member_method *method = role ? member_method(role, c->method) : NULL;
    if (!role)
        return no_role(c, first, err);
    if (!method)
        return no_method(c, role, err);
    c->lane = method->lane;
    if (task_stuck(c))
        return err_set(err, ERR_CONFLICT,
                       "a deadlock: %s() waits for a slot of %s, and methods that wait for it hold all", c->method,
                       c->group->key);
    return task_pick(c) ? GO : QUEUE;
}

static int pick_ranks(struct call *c, struct err *err)
{
    uint32_t world = c->group->world;
    if (c->execute == RECORD_ANY && c->rank == RECORD_GROUP)
        return pick_any(c, err);
    c->first = c->rank != RECORD_GROUP ? c->rank : 0;
    return group_missing(c->group, c->first, c->single ? 1 : c->world) == world ? GO : WAIT;
}

static int verdict(struct call *c, struct err *err)
{
    int r = check_group(c, err);
    if (r == GO)
        r = resolve_modes(c, err);
    if (r == GO)
        r = check_modes(c, err);
    if (r == GO)
        r = pick_ranks(c, err);
    return r >= 0 && r != WAIT && behind_another(c) ? WAIT : r;
}

// So that a call that one rank has no room for reaches none. The queue's own bookkeeping is small.
static int check_room(const struct call *c, uint32_t i, size_t cost, struct err *err)
{
    const struct member *m = c->group->ranks[c->first + i].member;
    if (m->n_pending >= c->router->config.member_calls)
        return err_set(err, ERR_THROTTLED, "rank %u of %s has %zu calls that it has not answered; no more now", m->rank,
                       c->group->key, m->n_pending);
    if (cost + 512 > record_writer_room(m->peer.out))
        return err_set(err, ERR_THROTTLED, "rank %u of %s has no room for %zu bytes more: %zu wait for it to read them",
                       m->rank, c->group->key, cost, m->peer.out->bytes);
    return 0;
}

static void number(struct call *c)
{
    struct router *r = c->router;
    do {
        c->id = ++r->last_id;
    } while (!c->id || idmap_get(&r->running, c->id));
    idmap_add(&r->running, c->id, c);
}

// Queues it for the next rank, in parts of blobs or to be copied.
static int send_next(struct call *c, const struct record_part *parts, size_t n, const struct call_body *copied,
                     struct err *err)
{
    struct member *m = c->group->ranks[c->first + c->n].member;
    struct record_header h = {
        .type = RECORD_CALL, .call = c->id, .rank = m->rank, .dispatch = c->dispatch, .execute = c->execute};
    if (c->quiet || !deal_wants(c->deal, m->rank))
        h.flags = RECORD_QUIET;
    if (c->order->lasting > c->lasting)
        h.flags |= RECORD_ORDERED;
    if (c->refs)
        h.flags |= RECORD_REFS;
    struct call_slot *slot = &c->slots[c->n];
    *slot = (struct call_slot){.call = c, .member = m};
    int r = c->state == CALL_STREAMING ? record_stream_begin(&slot->args, m->peer.out, &h, parts, n, err)
            : copied                   ? record_writer_copy(m->peer.out, &h, copied->data, copied->len, err)
                                       : record_writer_push(m->peer.out, &h, parts, n, err);
    if (r < 0)
        return r;
    c->n++;
    list_append(&m->pending, &slot->pending);
    m->n_pending++;
    member_lane(m, c->lane)->n_pending++;
    c->left++;
    peer_changed(&m->peer);
    return 0;
}

static int send_same(struct call *c, const struct call_body *body, uint32_t n, struct err *err)
{
    struct blob *shared = NULL;
    bool copied = c->state == CALL_RUNNING && !body->blob && (n == 1 || body->len <= COPY_MAX);
    size_t cost = body->blob && body->blob->area ? 0 : body->len;
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_room(c, i, cost, err);
    if (r < 0)
        return r;
    if (!copied && !(shared = call_keep(c, body)))
        return err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->method);
    struct record_part part = {.blob = shared, .len = body->len};
    if (body->blob)
        part.offset = (size_t)(body->data - body->blob->data);
    while (c->n < n && r == 0)
        r = send_next(c, &part, 1, copied ? body : NULL, err);
    blob_unref(shared);
    return r;
}

// The head goes to all, of the arguments each rank gets its piece: nothing is copied.
static int send_pieces(struct call *c, const struct split *s, struct err *err)
{
    const uint32_t *pieces = c->deal ? c->deal->d.chunk : NULL;
    int r = 0;
    for (uint32_t i = 0; i < c->world && r == 0; i++) {
        const struct split_piece *piece = &s->pieces[pieces ? pieces[i] : i];
        size_t cost = record_parts_cost(&s->head, 1) + record_parts_cost(s->parts + piece->first, piece->n);
        r = check_room(c, i, cost, err);
    }
    while (r == 0 && c->n < c->world) {
        const struct split_piece *piece = &s->pieces[pieces ? pieces[c->n] : c->n];
        struct record_part *parts = router_parts(c->router, piece->n + 1);
        parts[0] = s->head;
        if (piece->n)
            memcpy(parts + 1, s->parts + piece->first, piece->n * sizeof *parts);
        r = send_next(c, parts, piece->n + 1, NULL, err);
    }
    return r;
}

static int send_split(struct call *c, const struct call_body *body, const struct record_call *parts, struct err *err)
{
    struct split s;
    int r = split_make(c, body, parts, &s, err);
    if (r == 0)
        r = send_pieces(c, &s, err);
    split_done(&s);
    return r;
}

static bool is_whole(const struct call *c)
{
    return c->single || (c->deal ? c->deal->d.form == DISPATCH_WHOLE : c->dispatch == RECORD_ONE_TO_ALL);
}

// Of calls to given ranks.
static void find_lane(struct call *c)
{
    const struct member *m = c->group->ranks[c->first].member;
    const struct member_role *role = m->n_lanes > 1 ? member_role(m, c->role) : NULL;
    const struct member_method *method = role ? member_method(role, c->method) : NULL;
    if (method)
        c->lane = method->lane;
    else if (is_own(c))
        c->lane = MEMBER_LANE_NONE;
}

// Which it is among the stats is known once the ranks are there that have declared it.
static void name_stats(struct call *c)
{
    struct stats *s = &c->group->stats;
    if (c->stat.method != &s->other)
        return;
    const struct member_role *role = member_role(c->group->ranks[c->first].member, c->role);
    if (role && member_method(role, c->method))
        stats_become(&c->stat, stats_add(s, c->role, c->method));
}

// It, or one before it that is not answered, may be overtaken on the way to a rank.
static void note_lasting(struct call *c, size_t len)
{
    c->lasting = c->state == CALL_STREAMING || len > LASTING_MIN || c->order->lasting;
    c->order->lasting += c->lasting;
}

// From now on ranks get it.
static void set_out(struct call *c, enum call_state state, size_t len)
{
    call_become(c, state);
    number(c);
    note_lasting(c, len);
    c->router->last_any += c->execute == RECORD_ANY;
}

static int send_args(struct call *c, const struct call_body *body, const struct record_call *parts, struct err *err)
{
    set_out(c, CALL_RUNNING, body->len);
    return is_whole(c) ? send_same(c, body, c->single ? 1 : c->world, err) : send_split(c, body, parts, err);
}

static void send_call(struct call *c, const struct call_body *body)
{
    struct err err = ERR_INIT;
    struct record_call parts;
    struct blob *made = NULL; // the arguments with references looked up
    name_stats(c);
    find_lane(c);
    int r = record_call_decode(body->data, body->len, &parts, &err);
    if (r == 0 && !c->single)
        r = deal_make(c, &parts, &err);
    if (r == 0)
        r = object_arguments(c, &parts, is_whole(c), &made, &err);
    if (r == 0 && made)
        r = record_call_decode(made->data, made->len, &parts, &err);
    if (r == 0)
        r = send_args(c, made ? &(struct call_body){made->data, made->len, made} : body, &parts, &err);
    blob_unref(made);
    if (r < 0) {
        struct failure f;
        failure_from(&f, &err);
        call_fail(c, &f);
    }
}

// `kept`: its body, or what has come of it; NULL = there is no room.
static void call_wait(struct call *c, struct blob *kept, bool queued)
{
    if (!kept) {
        call_refuse(c, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this controller do already", c->method,
                    c->group->key);
        return;
    }
    c->body = kept;
    call_waits(c, kept->len);
    if (queued) {
        task_queue(c);
        return;
    }
    call_become(c, CALL_WAITING);
    list_append(&c->group->waiting, &c->link);
}

void call_explain_wait(const struct call *c, struct buf *out)
{
    if (c->attempt > c->group->attempt)
        buf_printf(out, "the call is for attempt %lld of %s, which is at attempt %u", (long long)c->attempt,
                   c->group->key, c->group->attempt);
    else
        group_explain(c->group, out);
}

static void refuse_waiting(struct call *c)
{
    struct buf why = BUF_INIT(1024);
    call_explain_wait(c, &why);
    call_refuse(c, ERR_UNAVAILABLE, "%s() was not sent: %s", c->method, buf_str(&why));
    buf_done(&why);
}

void call_submit(struct call *c, const struct call_body *body)
{
    struct err err = ERR_INIT;
    struct failure f;
    int r = verdict(c, &err);
    if (r == GO) {
        send_call(c, body);
    } else if (r < 0) {
        failure_from(&f, &err);
        call_fail(c, &f);
    } else if (c->refuse && r == WAIT) {
        refuse_waiting(c);
    } else {
        call_wait(c, call_keep(c, body), r == QUEUE);
    }
}

// The head of the call goes to all, behind it to each rank that of its own document; then what has come of the values.
static int send_cut(struct call *c, const struct call_body *body, const struct record_call *parts, struct err *err)
{
    struct blob *shared = call_keep(c, body);
    int r = 0;
    if (!shared)
        return err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->method);
    size_t at = body->blob ? (size_t)(body->data - body->blob->data) : 0, head = body->len - parts->args_len;
    for (uint32_t i = 0; i < c->world && r == 0; i++)
        r = check_room(c, i, head + cut_head(c, i).len, err);
    while (c->n < c->world && r == 0) {
        const struct record_part one[] = {{shared, at, head}, cut_head(c, c->n)};
        r = send_next(c, one, ARRAY_LEN(one), NULL, err);
    }
    const struct record_part rest = {shared, at + head + cut_head_len(c), parts->args_len - cut_head_len(c)};
    if (r == 0)
        r = cut_take(c, &rest, err);
    blob_unref(shared);
    return r;
}

static int send_first(struct call *c, const struct call_body *first, const struct record_call *parts, struct err *err)
{
    name_stats(c);
    find_lane(c);
    set_out(c, CALL_STREAMING, first->len);
    return c->cut ? send_cut(c, first, parts, err) : send_same(c, first, c->single ? 1 : c->world, err);
}

// JSON up to some length may have references in it, which are looked up. What lies in shared memory can be looked at
// there, and passed on by reference where it has none; whoever changes it meanwhile changes his own arguments.
static bool needs_no_look(const struct call *c, const struct call_body *first, const struct record_call *parts,
                          size_t *want)
{
    size_t most = c->router->config.whole_json, len = parts->args_len;
    const char *args = len ? parts->args : first->next;
    size_t seen = len ? len : first->next_len;
    if (!most || len > most || batch_is_safetensors(args, seen))
        return true;
    if (first->next_last && !ref_mentioned_in(parts->args, len, first->next, first->next_len))
        return true;
    if (!seen) // whatever comes next: what is shared goes to a rank in one stretch, then
        *want = first->len;
    else
        *want = 4 + parts->head_len + (len < SAFETENSORS_PREFIX ? SAFETENSORS_PREFIX : most + 1);
    return false;
}

// Deals it out as far as can be told from the first piece. False: more of it has to be there, *want bytes or all (0).
static bool plan(struct call *c, const struct call_body *first, const struct record_call *parts, size_t *want, int *ret,
                 struct err *err)
{
    *want = 0;
    *ret = c->single ? 0 : deal_make(c, parts, err);
    if (*ret < 0)
        return true;
    if (is_whole(c))
        return needs_no_look(c, first, parts, want);
    if (!c->deal || c->deal->d.form != DISPATCH_ROWS)
        return false;
    *ret = cut_begin(c, parts, want, err);
    if (*want)
        *want += 4 + parts->head_len;
    return *ret < 0 || c->cut;
}

// False: it has failed.
static bool begin_stream(struct call *c, const struct call_body *first, const struct record_call *parts)
{
    struct err err = ERR_INIT;
    struct failure f;
    if (send_first(c, first, parts, &err) == 0) {
        stream_flow(c);
        return true;
    }
    failure_from(&f, &err);
    call_fail(c, &f);
    return false;
}

bool call_stream(struct call *c, const struct call_body *first, size_t *want)
{
    struct err err = ERR_INIT;
    struct failure f;
    struct record_call parts;
    bool streams = true;
    int turn = verdict(c, &err), r = MIN(turn, 0);
    *want = 0;
    if (turn == WAIT && c->refuse) {
        refuse_waiting(c);
        return true;
    }
    if (r == 0)
        r = record_call_decode(first->data, first->len, &parts, &err);
    if (r == 0 && turn != WAIT) // until the group is ready nobody knows
        streams = plan(c, first, &parts, want, &r, &err);
    if (r < 0) {
        failure_from(&f, &err);
        call_fail(c, &f);
    } else if (!streams) {
        call_forget(c);
        return false;
    } else if (turn == GO) {
        (void)begin_stream(c, first, &parts);
    } else {
        call_wait(c, stall_begin(c, first), turn == QUEUE);
    }
    return true;
}

// Whether what has come of the arguments will do, or more has to be there first, which the sender is told to send.
static bool suffices(struct call *c, int *ret, struct err *err)
{
    for (bool planned = false; !planned;) {
        struct record_call parts;
        deal_free(c);
        cut_free(c);
        *ret = stall_fetch(c, err);
        if (*ret < 0 || !c->stalls) // an error, or all of it is there
            return true;
        if (c->body->len < c->want) {
            stall_hold(c, false);
            return false;
        }
        *ret = record_call_decode(c->body->data, c->body->len, &parts, err);
        if (*ret < 0)
            return true;
        struct call_body here = {c->body->data, c->body->len, c->body, NULL, 0, false};
        here.next = stall_peek(c, &here.next_len, &here.next_last);
        planned = plan(c, &here, &parts, &c->want, ret, err);
        if (!planned && !c->want)
            c->want = SIZE_MAX;
        if (!planned && c->want == here.len) { // whatever comes next
            stall_hold(c, false);
            return false;
        }
    }
    return true;
}

static void send_kept(struct call *c)
{
    struct err ignored = ERR_INIT; // it was read before
    struct record_call parts;
    struct blob *kept = TAKE_PTR(c->body);
    const struct call_body body = {kept->data, kept->len, kept};
    call_waits(c, 0);
    if (!c->stalls) {
        send_call(c, &body);
    } else if (record_call_decode(kept->data, kept->len, &parts, &ignored) == 0) {
        c->stalls = false;
        if (begin_stream(c, &body, &parts))
            stall_pass(c);
    }
    blob_unref(kept);
}

void call_resubmit(struct call *c)
{
    struct err err = ERR_INIT;
    int turn = verdict(c, &err), r = MIN(turn, 0);
    if (turn == WAIT && c->stalls)
        stall_hold(c, true);
    if (turn == WAIT || (turn == QUEUE && c->state == CALL_QUEUED))
        return;
    if (r == 0 && c->stalls && !suffices(c, &r, &err))
        return;
    if (r < 0) {
        struct failure f;
        failure_from(&f, &err);
        call_fail(c, &f);
        return;
    }
    if (turn == QUEUE) {
        if (c->stalls)
            stall_hold(c, true);
        task_queue(c);
        return;
    }
    send_kept(c);
}
