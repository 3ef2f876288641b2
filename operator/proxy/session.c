// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/session.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/proxy/args.h"
#include "operator/proxy/call_dispatch.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "operator/proxy/remote_object.h"
#include "operator/proxy/result.h"
#include "operator/proxy/stats_report.h"
#include "operator/proxy/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KILLS_PER_UNIT = 128, // of work: each record looks through them for its id
    HEAD_STEP = 64,       // by so much more is waited for until the head of a call is there
    COPIED = 1024,        // bytes of a body that its call pays for at once
};

#define OUTPUT_METHOD "group.output"

struct session *session_new(struct router *r, const char *ns, const char *group, struct record_writer *out, void *owner)
{
    struct session *s = xcalloc(1, sizeof *s);
    struct tenant *tenant = tenant_get(r, ns);
    *s = (struct session){.quota = quota_new(r->config.session_bytes, tenant->quota), .router = r, .tenant = tenant};
    peer_init(&s->peer, &r->changes, out, owner);
    record_writer_charge(out, s->quota);
    tenant_enter(tenant);
    if (group)
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
    kills_abandon(s);
    group_changes_abandon(s);
    output_session_ends(s);
    LIST_FOREACH(l, &s->answering) // the queue goes
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
            if (*work == 0)
                return false;
            --*work;
            call_abandon(CONTAINER_OF(k, struct call, open));
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

// An answer to what did not become a call.
static int refuse(struct session *s, uint32_t id, const struct err *err)
{
    struct failure f;
    failure_from(&f, err);
    session_fail(s, id, &f, "", true, false);
    return 0;
}

static bool is_found(const struct session *s, const struct call_head *head)
{
    return s->found && s->found_at == s->router->n_group_changes && head->group &&
           strncmp(s->found->name, head->group, head->group_len) == 0 && !s->found->name[head->group_len];
}

static struct group *find_group(struct session *s, const struct call_head *head, struct err *err)
{
    char key[GROUP_KEY_SIZE];
    if (is_found(s, head))
        return s->found;
    const char *name = head->group, *slash = name ? memchr(name, '/', head->group_len) : NULL;
    size_t ns_len = strlen(s->tenant->ns);
    if (slash && ((size_t)(slash - name) != ns_len || memcmp(name, s->tenant->ns, ns_len) != 0)) {
        err_set(err, ERR_FORBIDDEN, "this connection is for the groups of namespace %s; open another one for %.*s",
                s->tenant->ns, (int)head->group_len, name);
        return NULL;
    }
    if (slash)
        snprintf(key, sizeof key, "%.*s", (int)head->group_len, name);
    else if (name)
        group_key(key, s->tenant->ns, name, head->group_len);
    else
        snprintf(key, sizeof key, "%s", s->group);
    struct group *g = key[0] ? map_get(&s->router->by_key, key) : NULL;
    if (!g && !key[0])
        err_set(err, ERR_INVALID, "the call names no \"group\", and neither does the path of this connection");
    else if (!g)
        err_set(err, ERR_NOT_FOUND, "there is no WorkerGroup %s", key);
    s->found = g;
    s->found_at = s->router->n_group_changes;
    return g;
}

static void answer_with(struct session *s, uint32_t id, const struct buf *body)
{
    const struct record_header h = {.type = RECORD_RESULT, .call = id, .rank = RECORD_GROUP};
    struct blob *b = blob_copy(body->data, body->len, s->quota);
    struct err why = ERR_INIT;
    tenant_spend(s->tenant, body->len / TENANT_UNIT_BYTES);
    if (b)
        session_send(s, &h, &(struct record_part){.blob = b, .len = body->len}, 1);
    else
        tenant_explain(s->tenant, s->quota, &why);
    blob_unref(b);
    if (why.code)
        refuse(s, id, &why);
}

// The argument of group.info: the rank to begin with.
static int read_from(const struct record_call *parts, const struct group *g, uint32_t *ret, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *args = NULL;
    const struct json *given = NULL;
    int64_t from = 0;
    int r = parts->args_len ? json_parse(parts->args, parts->args_len, NULL, &a, &args, err) : 0;
    if (r == 0 && args && args->type == JSON_NUMBER)
        given = args;
    JSON_FOREACH(v, r == 0 && args && args->type == JSON_LIST ? args : NULL)
        given = v;
    if (given && (!json_i64(given, &from) || from < 0 || from >= g->world))
        r = err_set(err, ERR_INVALID,
                    "the argument of group.info is the rank to begin with, and %s has ranks 0 to %u; without one it "
                    "begins with rank 0",
                    g->key, g->world - 1);
    arena_done(&a);
    *ret = (uint32_t)from;
    return r;
}

// They cost no rank anything, so nothing else holds back a client that asks and does not read.
static int check_reads(const struct session *s, struct err *err)
{
    size_t waiting = s->peer.out->queue.bytes;
    return waiting <= s->router->config.low_mark
               ? 0
               : err_set(err, ERR_THROTTLED,
                         "%zu bytes of answers wait for this connection; read them before you send more requests",
                         waiting);
}

// What the proxy answers by itself; no method of a class has a dot in its name.
static bool answer_self(struct session *s, uint32_t id, const struct call_head *head, const struct record_call *parts,
                        const struct group *g)
{
    bool info = call_head_method_is(head, "group.info");
    if (!info && !call_head_method_is(head, "group.stats"))
        return false;
    struct buf body = BUF_INIT(SIZE_MAX / 2);
    struct err why = ERR_INIT;
    uint32_t from = 0;
    if (check_reads(s, &why) < 0 || (info && read_from(parts, g, &from, &why) < 0)) {
        refuse(s, id, &why);
    } else {
        info ? group_info(g, from, &body) : stats_report_group(g, &body);
        answer_with(s, id, &body);
    }
    buf_done(&body);
    return true;
}

// group.output: lines of the group's ranks come from now on, with {"listen": false} no more.
static bool answer_output(struct session *s, uint32_t id, const struct call_head *head, const struct record_call *parts,
                          struct group *g)
{
    struct arena a = ARENA_INIT;
    struct err why = ERR_INIT;
    struct json *args = NULL;
    if (!call_head_method_is(head, OUTPUT_METHOD))
        return false;
    if (parts->args_len && json_parse(parts->args, parts->args_len, NULL, &a, &args, &why) < 0)
        err_wrap(&why, "the arguments of %s", OUTPUT_METHOD);
    if (!why.code && json_is_false(json_get(args, "listen")))
        output_unlisten(s, g);
    else if (!why.code)
        output_listen(s, g, &why);
    arena_done(&a);
    if (why.code)
        refuse(s, id, &why);
    else
        session_copy(s, &(struct record_header){.type = RECORD_RESULT, .call = id, .rank = RECORD_GROUP}, "null", 4);
    return true;
}

static int check_counts(const struct session *s, struct err *err)
{
    const struct router *r = s->router;
    if (r->stopping)
        return err_set(err, ERR_UNAVAILABLE, "this operator is stopping; connect to another one");
    uint32_t open = s->calls.used + s->n_kills;
    if (open >= r->config.session_calls)
        return err_set(err, ERR_THROTTLED,
                       "%u calls of this connection have no answer yet, which is the limit; wait for some of them",
                       open);
    return tenant_check_calls(s->tenant, err);
}

// Behind a body that is not complete yet.
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

// A method of a group. ROUTER_COLLECT: more of it has to come first.
static int begin_method(struct session *s, const struct record *rec, const struct call_head *head, struct group *g,
                        uint64_t unfinished)
{
    bool piece = rec->h.flags & RECORD_MORE;
    struct request q;
    struct call_start start;
    const struct call_body body = {rec->body, rec->len, rec->blob, rec->next, rec->next_len, rec->next_last};
    request_read(&rec->h, head, g, &q);
    if (piece && !call_decide(s, g, &q, &body, &start, &s->peer.want))
        return ROUTER_COLLECT;
    struct call *c = call_new(s, &q, g, piece || rec->blob || rec->len > COPIED ? 0 : rec->len);
    if (!c) {
        if (piece)
            call_start_forget(&start);
        struct err why = ERR_INIT;
        tenant_explain(s->tenant, s->quota, &why);
        return refuse(s, rec->h.call, &why);
    }
    c->stat.bytes_in = rec->len;
    if (piece)
        call_stream(c, &body, &start);
    else if (rec->seq > unfinished)
        block(s, c, &body, rec->seq);
    else
        call_submit(c, &body);
    return 0;
}

// A CALL record: what the proxy answers itself, what others answer, or a call of a method. ROUTER_COLLECT: likewise.
static int begin(struct session *s, const struct record *given, uint64_t unfinished, struct err *err)
{
    struct record_call parts;
    struct call_head head;
    struct record now = *given, *rec = &now; // of an object's method it becomes another call
    _cleanup_(unref_blob) struct blob *made = NULL;
    bool piece = rec->h.flags & RECORD_MORE;
    if (idmap_get(&s->calls, rec->h.call) || kill_find(s, rec->h.call) || group_change_pending(s, rec->h.call))
        return err_set(err, ERR_PROTO, "call id %u is in use by a call that is not answered", rec->h.call);
    struct err why = ERR_INIT;
    struct group *g = NULL;
    s->peer.want = 0;
    if (piece && rec->seq > unfinished) // those before it have not come completely
        return ROUTER_COLLECT;
    if (piece && record_call_decode(rec->body, rec->len, &parts, &why) < 0) {
        s->peer.want = rec->len + HEAD_STEP;
        return ROUTER_COLLECT;
    }
    int begun = 0;
    if (rec->h.flags & RECORD_PARTS)
        err_set(&why, ERR_INVALID,
                "this version does not support arguments in parts; send a list with one element per rank");
    else if (record_call_decode(rec->body, rec->len, &parts, &why) == 0 &&
             call_head_decode(parts.head, parts.head_len, &head, &why) == 0 && check_counts(s, &why) == 0) {
        enum group_change_kind kind = group_change_kind_of(head.method, head.method_len);
        if (kind && piece)
            return ROUTER_COLLECT;
        if (kind && group_change_begin(s, kind, rec->h.call, parts.args, parts.args_len, &why) == 0)
            return 0;
        begun = kind ? 0 : object_begin(s, rec, &head, &parts, &made, &why);
        if (begun == ROUTER_COLLECT)
            return begun;
        g = kind || begun < 0 ? NULL : find_group(s, &head, &why);
    }
    if (!g)
        return refuse(s, rec->h.call, &why);
    if (answer_self(s, rec->h.call, &head, &parts, g) || answer_output(s, rec->h.call, &head, &parts, g))
        return 0;
    if (kill_is(&head)) {
        if (piece)
            return ROUTER_COLLECT;
        return kill_begin(s, g, &rec->h, &head, &why) < 0 ? refuse(s, rec->h.call, &why) : 0;
    }
    return begin_method(s, rec, &head, g, unfinished);
}

// A further piece, of a call that streams, is parked or was answered already; or the end of collecting it.
static int take_piece(struct session *s, const struct record *rec)
{
    const struct call_body body = {rec->body, rec->len, rec->blob};
    struct call *c = idmap_get(&s->calls, rec->h.call);
    struct err why = ERR_INIT;
    if (rec->over) {
        err_set(&why, ERR_LIMIT,
                "the arguments are too long for a call that the proxy needs as a whole: it follows a call that has not "
                "arrived completely, or its arguments are JSON that the proxy must split");
        return refuse(s, rec->h.call, &why);
    }
    if (c)
        c->stat.bytes_in += rec->len;
    bool last = !(rec->h.flags & RECORD_MORE), passes = c && c->state == CALL_STREAMING;
    int r = c ? args_piece(c, &body, last, &why) : 0;
    if (r < 0)
        call_fail_err(c, &why);
    else if (passes)
        call_flow(c);
    return 0;
}

static int cancel(struct session *s, const struct record *rec)
{
    struct call *c = idmap_get(&s->calls, rec->h.call);
    struct kill *k = c ? NULL : kill_find(s, rec->h.call);
    struct err why = ERR_INIT;
    if (c)
        call_cancel(c);
    if (k)
        kill_cancel(k);
    if (c || k || !rec->dropped) // else its answer is on the way
        return 0;
    err_set(&why, ERR_CANCELED, "the client canceled the call before all of it had arrived");
    return refuse(s, rec->h.call, &why);
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
        r = take_piece(s, rec);
    } else if (rec->h.type == RECORD_CALL) {
        // What it was held up by, and came before it, goes first.
        release_blocked(s, MIN(unfinished, rec->seq));
        r = begin(s, rec, unfinished, err);
    } else if (rec->h.type == RECORD_CANCEL) {
        r = cancel(s, rec);
    } else if (rec->h.type != RECORD_ARGS) { // ARGS: of a call that was refused
        r = err_set(err, ERR_PROTO, "a client must not send %s records here", record_type_name(rec->h.type));
    }
    release_blocked(s, unfinished);
    session_flow(s);
    return r;
}
