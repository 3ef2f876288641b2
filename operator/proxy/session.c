// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/session.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/proxy/args.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/call_queue.h"
#include "operator/proxy/group_request.h"
#include "operator/proxy/output.h"
#include "operator/proxy/remote_object.h"
#include "operator/proxy/result.h"
#include "operator/proxy/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KILLS_PER_UNIT = 128, // kills for one unit of work: each record searches them for its id
    HEAD_STEP = 64,       // while the head of a call is incomplete, wait for this many more bytes
    COPIED = 1024,        // a call pays at once for a body up to this length
};

struct session *session_new(struct router *r, const char *ns, const char *group, struct record_writer *out, void *owner)
{
    struct session *s = xcalloc(1, sizeof *s);
    struct tenant *tenant = tenant_get(r, ns);
    *s = (struct session){.quota = quota_new(r->config.session_bytes, tenant->quota), .router = r, .tenant = tenant};
    peer_init(&s->peer, &r->changes, out, owner);
    record_writer_charge(out, s->quota);
    tenant_enter(tenant);
    if (!str_empty(group))
        group_key(s->group, ns, group, strlen(group));
    list_init(&s->open);
    list_init(&s->answering);
    list_init(&s->group_changes);
    list_init(&s->kills);
    list_init(&s->blocked_calls);
    list_init(&s->listening);
    list_init(&s->stopped);
    list_init(&s->ended);
    s->order = xcalloc(1, sizeof *s->order);
    s->order->refs = 1;
    return s;
}

static void session_free(struct session *s)
{
    object_session_ends(s);
    list_remove(&s->ended);
    idmap_done(&s->calls);
    idmap_done(&s->waits);
    quota_unref(s->quota);
    session_order_unref(s->order);
    tenant_unref(s->tenant);
    free(s);
}

void session_end(struct session *s)
{
    peer_done(&s->peer);
    tenant_leave(s->tenant);
    list_remove(&s->stopped);
    group_requests_abandon(s);
    LIST_FOREACH(l, &s->answering) // their queue goes away
        call_abandon(CONTAINER_OF(l, struct call, open));
    if (list_empty(&s->open)) {
        session_free(s);
        return;
    }
    list_append(&s->tenant->ended, &s->ended);
    tenant_falls_behind(s->tenant);
}

bool sessions_go_on_ending(struct tenant *t, unsigned *work)
{
    LIST_FOREACH(l, &t->ended) {
        struct session *s = CONTAINER_OF(l, struct session, ended);
        LIST_FOREACH(k, &s->open) {
            struct call *c = CONTAINER_OF(k, struct call, open);
            if (*work == 0)
                return false;
            *work -= MIN(*work, call_work(c));
            call_abandon(c);
        }
        session_free(s);
    }
    return true;
}

void session_listen(struct session *s)
{
    struct err ignored = ERR_INIT;
    struct group *g = s->group[0] ? map_get(&s->router->by_key, s->group) : NULL;
    if (g)
        (void)output_listen(s, g, &ignored);
}

bool session_idle(const struct session *s)
{
    return s->calls.used == 0 && list_empty(&s->kills) && list_empty(&s->group_changes);
}

static int check_counts(const struct session *s, const struct call_head *head, struct err *err)
{
    const struct router *r = s->router;
    if (r->stopping)
        return err_set(err, ERR_UNAVAILABLE, "this operator is stopping; connect to another one");
    if (group_request_keeps(head))
        return 0;
    uint32_t open = s->calls.used + s->n_kills;
    if (open >= r->config.session_calls)
        return err_set(err, ERR_THROTTLED,
                       "%u calls of this connection have no answer yet, which is the limit; wait for some of them",
                       open);
    return tenant_check_calls(s->tenant, err);
}

// The call waits behind a body that is not complete yet.
static void block(struct session *s, struct call *c, const struct call_body *body, uint64_t seq)
{
    struct list *at = &s->blocked_calls;
    c->seq = seq;
    if (!args_keep(c, body)) {
        call_refuse(c, ERR_THROTTLED, "%s(): too many calls of this client wait already", c->req.method);
        return;
    }
    call_become(c, CALL_BLOCKED);
    while (at->prev != &s->blocked_calls && CONTAINER_OF(at->prev, struct call, link)->seq > seq)
        at = at->prev;
    list_insert_before(at, &c->link);
}

static void unref_blob(struct blob **b)
{
    blob_unref(*b);
}

// Makes a call. ROUTER_COLLECT: more of the record must arrive first.
static int begin_method(struct session *s, const struct record *rec, const struct call_head *head, struct group *g,
                        uint64_t unfinished, struct err *err)
{
    bool piece = rec->h.flags & RECORD_MORE;
    struct request q;
    struct call_start start;
    const struct call_body body = {rec->body, rec->len, rec->blob, rec->next, rec->next_len, rec->next_last};
    request_read(&rec->h, head, g, &q);
    if (piece && !call_start_decide(&start, s, g, &q, &body, &s->peer.want))
        return ROUTER_COLLECT;
    struct call *c = call_new(s, &q, g, piece || rec->blob || rec->len > COPIED ? 0 : rec->len);
    if (!c) {
        if (piece)
            call_start_forget(&start);
        tenant_explain(s->tenant, s->quota, err);
        return err->code;
    }
    c->stat.bytes_in = rec->len;
    tenant_spend(s->tenant, call_work(c) - 1);
    object_note_free(c, rec->blob);
    if (piece)
        call_stream(c, &body, &start);
    else if (rec->seq > unfinished)
        block(s, c, &body, rec->seq);
    else
        call_submit(c, &body);
    return 0;
}

// Turns the methods object.* into calls of the ranks that keep the objects, and then makes the call. ROUTER_COLLECT: as
// above.
static int begin_call(struct session *s, const struct record *given, struct call_head *head, struct record_call *parts,
                      uint64_t unfinished, struct err *err)
{
    struct record rec = *given;
    _cleanup_(unref_blob) struct blob *made = NULL;
    int r = object_begin(s, &rec, head, parts, &made, err);
    if (r != 0)
        return r;
    struct group *g = session_group(s, head, err);
    return g ? begin_method(s, &rec, head, g, unfinished, err) : err->code;
}

static int read_head(const struct session *s, const struct record *rec, struct record_call *parts,
                     struct call_head *head, struct err *err)
{
    if (rec->h.flags & RECORD_PARTS)
        return err_set(err, ERR_INVALID,
                       "this version does not support arguments in parts; send a list with one element per rank");
    int r = record_call_decode(rec->body, rec->len, parts, err);
    if (r == 0 && parts->head_len > CALL_HEAD_MAX)
        r = err_set(err, ERR_LIMIT, "the head of the call has %zu bytes; at most %d", parts->head_len, CALL_HEAD_MAX);
    tenant_spend(s->tenant, r == 0 ? parts->head_len / TENANT_UNIT_BYTES : 0);
    if (r == 0)
        r = call_head_decode(parts->head, parts->head_len, head, err);
    return r < 0 ? r : check_counts(s, head, err);
}

// Takes the beginning of a CALL record. ROUTER_COLLECT: as above.
static int begin(struct session *s, const struct record *rec, uint64_t unfinished, struct err *err)
{
    struct record_call parts;
    struct call_head head;
    struct err why = ERR_INIT;
    bool piece = rec->h.flags & RECORD_MORE;
    if (idmap_get(&s->calls, rec->h.call) || group_request_pending(s, rec->h.call))
        return err_set(err, ERR_PROTO, "call id %u is in use by a call that is not answered", rec->h.call);
    s->peer.want = 0;
    if (piece && rec->seq > unfinished) // earlier bodies are not complete
        return ROUTER_COLLECT;
    if (piece && record_call_decode(rec->body, rec->len, &parts, &why) < 0) {
        s->peer.want = rec->len + HEAD_STEP;
        return ROUTER_COLLECT;
    }
    int r = read_head(s, rec, &parts, &head, &why);
    if (r == 0)
        r = group_request_is(&head) ? group_request_begin(s, rec, &head, &parts, &why)
                                    : begin_call(s, rec, &head, &parts, unfinished, &why);
    if (r < 0)
        session_refuse(s, rec->h.call, &why);
    return MAX(r, 0);
}

// Takes a further piece of a call that streams, is parked, or was answered already. Or a call became too long to be
// collected.
static void take_piece(struct session *s, const struct record *rec)
{
    const struct call_body body = {rec->body, rec->len, rec->blob};
    struct call *c = idmap_get(&s->calls, rec->h.call);
    struct err why = ERR_INIT;
    if (rec->over) {
        err_set(&why, ERR_LIMIT,
                "the arguments are too long for a call that the proxy needs as a whole: it follows a call that has not "
                "arrived completely, or its arguments are JSON that the proxy must split");
        session_refuse(s, rec->h.call, &why);
        return;
    }
    if (c)
        c->stat.bytes_in += rec->len;
    bool last = !(rec->h.flags & RECORD_MORE), passes = c && c->state == CALL_STREAMING;
    if (passes)
        tenant_spend(s->tenant, call_work(c) - 1);
    int r = c ? args_piece(c, &body, last, &why) : 0;
    if (r < 0)
        call_fail_err(c, &why);
    else if (passes)
        result_flow(c);
}

static void cancel(struct session *s, const struct record *rec)
{
    struct call *c = idmap_get(&s->calls, rec->h.call);
    struct err why = ERR_INIT;
    if (c)
        call_cancel(c);
    if (c || group_request_cancel(s, rec->h.call) || !rec->dropped) // else its answer is on the way
        return;
    err_set(&why, ERR_CANCELED, "the client canceled the call before all of it had arrived");
    session_refuse(s, rec->h.call, &why);
}

static void release_blocked(struct session *s, uint64_t unfinished)
{
    while (!list_empty(&s->blocked_calls)) {
        struct call *c = CONTAINER_OF(s->blocked_calls.next, struct call, link);
        if (c->seq > unfinished)
            return;
        const struct call_body kept = args_take(c);
        call_submit(c, &kept);
        blob_unref(kept.blob);
    }
}

int session_record(struct session *s, const struct record *rec, uint64_t unfinished, struct err *err)
{
    int r = 0;
    if (s->peer.close_code)
        return 0;
    tenant_spend(s->tenant, 1 + s->n_kills / KILLS_PER_UNIT);
    if (rec->h.type == RECORD_CALL && (rec->offset || rec->over)) {
        take_piece(s, rec);
    } else if (rec->h.type == RECORD_CALL) {
        // Calls that waited for an earlier body, and were sent before this one, go first.
        release_blocked(s, MIN(unfinished, rec->seq));
        r = begin(s, rec, unfinished, err);
    } else if (rec->h.type == RECORD_CANCEL) {
        cancel(s, rec);
    } else if (rec->h.type != RECORD_ARGS) { // ARGS of a call that was refused
        r = err_set(err, ERR_PROTO, "a client must not send %s records here", record_type_name(rec->h.type));
    }
    release_blocked(s, unfinished);
    session_flow(s);
    return r;
}
