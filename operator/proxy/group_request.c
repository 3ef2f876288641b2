// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/group_request.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "operator/proxy/stats_report.h"
#include "operator/proxy/tenant.h"

#include <string.h>

enum { ARGS_MAX = 4096 }; // of the methods below, which are read at once

static const char *const methods[] = {"group.info", "group.stats", "group.output", "group.kill"}; // and the changes

// These answers cost no rank anything, so nothing else pauses a client that asks and does not read.
static int check_reads(const struct session *s, struct err *err)
{
    size_t waiting = s->peer.out->queue.bytes;
    return waiting <= s->router->config.low_mark
               ? 0
               : err_set(err, ERR_THROTTLED,
                         "%zu bytes of answers wait for this connection; read them before you send more requests",
                         waiting);
}

static int answer(struct session *s, uint32_t id, const struct buf *body, struct err *err)
{
    const struct record_header h = {.type = RECORD_RESULT, .call = id, .rank = RECORD_GROUP};
    struct blob *b = blob_copy(body->data, body->len, s->quota);
    tenant_spend(s->tenant, body->len / TENANT_UNIT_BYTES);
    if (b)
        session_send(s, &h, &(struct record_part){.blob = b, .len = body->len}, 1);
    else
        tenant_explain(s->tenant, s->quota, err);
    blob_unref(b);
    return err->code;
}

// Reads the argument of group.info: the first rank of the page.
static int read_from(const struct record_call *parts, const struct group *g, uint32_t *ret, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
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
    *ret = (uint32_t)from;
    return r;
}

static int answer_self(struct session *s, uint32_t id, bool info, const struct record_call *parts,
                       const struct group *g, struct err *err)
{
    _cleanup_(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
    uint32_t from = 0;
    if (check_reads(s, err) < 0 || (info && read_from(parts, g, &from, err) < 0))
        return err->code;
    info ? group_info(g, from, &body) : stats_report_group(g, &body);
    return answer(s, id, &body, err);
}

// From now on the client gets lines of the group's ranks; with {"listen": false} it gets no more.
static int answer_output(struct session *s, uint32_t id, const struct record_call *parts, struct group *g,
                         struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *args = NULL;
    if (parts->args_len && json_parse(parts->args, parts->args_len, NULL, &a, &args, err) < 0)
        err_wrap(err, "the arguments of group.output");
    else if (json_is_false(json_get(args, "listen")))
        output_unlisten(s, g);
    else
        (void)output_listen(s, g, err);
    if (!err->code)
        session_answer(s, id, "null", 4);
    return err->code;
}

bool group_request_is(const struct call_head *head)
{
    bool found = false;
    if (head->method_len < strlen("group.") || memcmp(head->method, "group.", strlen("group.")) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(methods) && !found; i++)
        found = call_head_method_is(head, methods[i]);
    return found || group_change_kind_of(head->method, head->method_len);
}

bool group_request_keeps(const struct call_head *head)
{
    return group_change_kind_of(head->method, head->method_len) == GROUP_CHANGE_RENEW;
}

// Names the first option of the request that is for calls only; NULL = there is none. A kill has rules of its own.
static const char *option_of_calls(const struct record_header *h, const struct call_head *head)
{
    return h->rank != RECORD_GROUP ? "rank"
           : h->dispatch           ? "dispatch"
           : h->execute            ? "execute"
           : head->split           ? "split"
           : head->collect         ? "collect"
           : head->pad             ? "pad"
           : head->role            ? "role"
           : head->attempt         ? "attempt"
                                   : NULL;
}

static int check_options(const struct record_header *h, const struct call_head *head, struct err *err)
{
    const char *option = call_head_method_is(head, "group.kill") ? NULL : option_of_calls(h, head);
    if (head->keep || head->pin)
        return err_set(err, ERR_INVALID,
                       "%.*s has no result that can stay on the workers: leave out \"keep\" and \"pin\"",
                       (int)head->method_len, head->method);
    return option ? err_set(err, ERR_INVALID, "%.*s goes to no rank: leave out \"%s\"", (int)head->method_len,
                            head->method, option)
                  : 0;
}

int group_request_begin(struct session *s, const struct record *rec, const struct call_head *head,
                        const struct record_call *parts, struct err *err)
{
    enum group_change_kind change = group_change_kind_of(head->method, head->method_len);
    if (check_options(&rec->h, head, err) < 0)
        return err->code;
    if (rec->h.flags & RECORD_MORE)
        return ROUTER_COLLECT;
    if (change)
        return group_change_begin(s, change, rec->h.call, parts->args, parts->args_len, err);
    struct group *g = session_group(s, head, err);
    if (!g)
        return err->code;
    if (parts->args_len > ARGS_MAX)
        return err_set(err, ERR_LIMIT, "the arguments of %.*s have %zu bytes; at most %d", (int)head->method_len,
                       head->method, parts->args_len, ARGS_MAX);
    if (call_head_method_is(head, "group.kill"))
        return kill_begin(s, g, &rec->h, head, err);
    if (call_head_method_is(head, "group.output"))
        return answer_output(s, rec->h.call, parts, g, err);
    return answer_self(s, rec->h.call, call_head_method_is(head, "group.info"), parts, g, err);
}

bool group_request_pending(const struct session *s, uint32_t id)
{
    return kill_find(s, id) || group_change_pending(s, id);
}

bool group_request_cancel(struct session *s, uint32_t id)
{
    struct kill *k = kill_find(s, id);
    if (k)
        kill_cancel(k);
    return k != NULL;
}

void group_requests_abandon(struct session *s)
{
    kills_abandon(s);
    group_changes_abandon(s);
    output_session_ends(s);
}
