// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call.h"
#include "operator/proxy/mode.h"
#include "operator/proxy/split.h"

#include <string.h>

#define COPY_MAX ((size_t)1 << 10) // a body up to this is rather copied for each rank than shared by them

enum { WAIT, GO }; // else a negative error

static int no_method(const struct call *c, const struct member *m, struct err *err)
{
    struct buf names = BUF_INIT(512);
    for (size_t i = 0; i < m->n_methods && !names.over; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", m->methods[i].name);
    err_set(err, ERR_NOT_FOUND, "%s has no method '%s'; it has: %s%s", c->group->key, c->method,
            m->n_methods ? buf_str(&names) : "none", names.over ? ", ..." : "");
    buf_done(&names);
    return err->code;
}

// The modes that the caller left open are those that the method was registered with.
static int resolve_modes(struct call *c, struct err *err)
{
    const struct member *zero = c->group->ranks[0].member;
    if (c->rank != RECORD_GROUP || (c->dispatch && c->execute) || c->execute == RECORD_RANK_ZERO)
        return GO;
    if (!zero)
        return WAIT;
    const struct member_method *method = member_method(zero, c->method);
    if (!method && !c->dispatch)
        return no_method(c, zero, err);
    if (!c->dispatch)
        c->dispatch = method->dispatch;
    if (!c->execute)
        c->execute = method ? method->execute : RECORD_ALL;
    return GO;
}

static int check_modes(const struct call *c, struct err *err)
{
    if (c->rank != RECORD_GROUP || c->execute == RECORD_RANK_ZERO)
        return GO;
    if (c->execute != RECORD_ALL)
        return err_set(err, ERR_INVALID, "%s(): execute mode %s is not served by this version", c->method,
                       mode_execute_name(c->execute));
    if (c->dispatch != RECORD_ONE_TO_ALL && c->dispatch != RECORD_ALL_TO_ALL && c->dispatch != RECORD_DP_COMPUTE)
        return err_set(err, ERR_INVALID, "%s(): dispatch mode %s is not served by this version", c->method,
                       mode_dispatch_name(c->dispatch));
    return GO;
}

static int check_group(const struct call *c, struct err *err)
{
    const struct group *g = c->group;
    if (g->refusal)
        return err_set(err, ERR_UNAVAILABLE, "%s takes no calls: %s", g->key, g->refusal);
    if (c->world != g->world)
        return err_set(err, ERR_CONFLICT, "%s had %u ranks when the call came and has %u now; call again", g->key,
                       c->world, g->world);
    if (c->rank != RECORD_GROUP && c->rank >= g->world)
        return err_set(err, ERR_INVALID, "%s has no rank %u; its ranks are 0 to %u", g->key, c->rank, g->world - 1);
    if (c->attempt && c->attempt < g->attempt)
        return err_set(err, ERR_CONFLICT, "the call is for attempt %lld of %s, which is over: it is at attempt %u",
                       (long long)c->attempt, g->key, g->attempt);
    return c->attempt > g->attempt ? WAIT : GO; // another operator has seen it already
}

// Per caller and rank calls run in the order sent: none passes an earlier one that waits.
static bool behind_another(const struct call *c)
{
    const struct list *waiting = &c->group->waiting;
    if (c->waits) // asked by the router, which goes through all in order
        return false;
    for (const struct list *l = waiting->prev; l != waiting; l = l->prev)
        if (CONTAINER_OF(l, struct call, link)->session == c->session)
            return true;
    return false;
}

static int verdict(struct call *c, struct err *err)
{
    int r = check_group(c, err);
    if (r == GO)
        r = resolve_modes(c, err);
    if (r == GO)
        r = check_modes(c, err);
    if (r != GO)
        return r;
    c->single = c->rank != RECORD_GROUP || c->execute == RECORD_RANK_ZERO;
    c->first = c->rank != RECORD_GROUP ? c->rank : 0;
    uint32_t n = c->single ? 1 : c->world;
    return group_missing(c->group, c->first, n) == c->group->world && !behind_another(c) ? GO : WAIT;
}

// So that a call that one rank has no room for reaches none. The queue's own bookkeeping is small.
static int check_room(const struct call *c, uint32_t i, size_t len, struct err *err)
{
    const struct member *m = c->group->ranks[c->first + i].member;
    if (m->n_pending >= c->router->config.member_calls)
        return err_set(err, ERR_THROTTLED, "rank %u of %s has %zu calls that it has not answered; no more now", m->rank,
                       c->group->key, m->n_pending);
    if (len + 512 > m->peer.out->max_bytes - m->peer.out->bytes)
        return err_set(err, ERR_THROTTLED, "rank %u of %s has no room for %zu bytes more: %zu wait for it to read them",
                       m->rank, c->group->key, len, m->peer.out->bytes);
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
    int r = copied ? record_writer_copy(m->peer.out, &h, copied->data, copied->len, err)
                   : record_writer_push(m->peer.out, &h, parts, n, err);
    if (r < 0)
        return r;
    struct call_slot *slot = &c->slots[c->n++];
    *slot = (struct call_slot){.call = c, .member = m};
    list_append(&m->pending, &slot->pending);
    m->n_pending++;
    c->left++;
    peer_changed(&m->peer);
    return 0;
}

static int send_same(struct call *c, const struct call_body *body, uint32_t n, struct err *err)
{
    struct blob *shared = NULL;
    bool copied = !body->blob && (n == 1 || body->len <= COPY_MAX);
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_room(c, i, body->len, err);
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

// The head goes to all, of the arguments each rank gets its own: nothing is copied.
static int send_split(struct call *c, const struct call_body *body, const struct record_call *parts, uint32_t n,
                      struct err *err)
{
    struct blob *args = NULL, *head = NULL;
    struct call_body front = {body->data, body->len - parts->args_len, body->blob};
    c->n = n; // what split_args() makes arguments for
    int r = split_args(c, body, parts, &args, err);
    c->n = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_room(c, i, front.len + c->slots[i].len, err);
    if (r == 0 && !(head = call_keep(c, &front)))
        r = err_set(err, ERR_LIMIT, "%s(): no room for its head", c->method);
    struct record_part in_head = {.blob = head, .len = front.len};
    if (body->blob)
        in_head.offset = (size_t)(body->data - body->blob->data);
    while (r == 0 && c->n < n) {
        const struct call_slot *slot = &c->slots[c->n];
        struct record_part in_args = {args, slot->offset, slot->len};
        char first = args->data[slot->offset];
        bool alone = first != '{' && first != '[';
        struct blob *marks = c->router->marks;
        struct record_part all[] = {in_head, {marks, 0, alone}, in_args, {marks, 2, alone}};
        r = send_next(c, all, ARRAY_LEN(all), NULL, err);
    }
    blob_unref(args);
    blob_unref(head);
    return r;
}

static void send_call(struct call *c, const struct call_body *body)
{
    struct err err = ERR_INIT;
    struct record_call parts;
    uint32_t n = c->single ? 1 : c->world;
    int r = record_call_decode(body->data, body->len, &parts, &err);
    if (r == 0) {
        number(c);
        bool same = c->single || c->dispatch == RECORD_ONE_TO_ALL;
        r = same ? send_same(c, body, n, &err) : send_split(c, body, &parts, n, &err);
    }
    if (r < 0) {
        struct failure f;
        failure_from(&f, &err);
        call_fail(c, &f);
    }
}

static void call_wait(struct call *c, const struct call_body *body)
{
    struct blob *kept = call_keep(c, body);
    if (!kept) {
        call_refuse(c, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this controller do already", c->method,
                    c->group->key);
        return;
    }
    c->body = kept;
    c->waits = true;
    list_append(&c->group->waiting, &c->link);
    if (!c->timeout_ms)
        deadlines_add(&c->router->deadlines, &c->deadline,
                      clock_mono_ms(c->router->config.clock) + c->router->config.ready_wait_ms);
}

static void refuse_waiting(struct call *c)
{
    struct buf why = BUF_INIT(1024);
    group_explain(c->group, &why);
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
    } else if (c->refuse) {
        refuse_waiting(c);
    } else {
        call_wait(c, body);
    }
}

void call_resubmit(struct call *c)
{
    struct err err = ERR_INIT;
    int r = verdict(c, &err);
    if (r == WAIT)
        return;
    if (r < 0) {
        struct failure f;
        failure_from(&f, &err);
        call_fail(c, &f);
        return;
    }
    struct blob *kept = TAKE_PTR(c->body);
    list_remove(&c->link);
    c->waits = false;
    if (!c->timeout_ms)
        deadlines_del(&c->router->deadlines, &c->deadline);
    send_call(c, &(struct call_body){kept->data, kept->len, kept});
    blob_unref(kept);
}
