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

#define PREFIX "group."

struct asked {
    struct session *session;
    const struct record_header *h;
    const struct call_head *head;
    const struct record_call *parts;
    struct group *group;
};

// These answers cost no rank anything, so nothing else holds back a client that asks and does not read.
static int check_reads(const struct session *s, struct err *err)
{
    size_t waiting = s->peer.out->queue.bytes;
    return waiting <= s->router->config.low_mark
               ? 0
               : err_set(err, ERR_THROTTLED,
                         "%zu bytes of answers wait for this connection; read them before you send more requests",
                         waiting);
}

static int answer(const struct asked *a, const struct buf *body, struct err *err)
{
    struct session *s = a->session;
    const struct record_header h = {.type = RECORD_RESULT, .call = a->h->call, .rank = RECORD_GROUP};
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

static int answer_info(const struct asked *a, struct err *err)
{
    struct buf body = BUF_INIT(SIZE_MAX / 2);
    uint32_t from;
    if (check_reads(a->session, err) < 0 || read_from(a->parts, a->group, &from, err) < 0)
        return err->code;
    group_info(a->group, from, &body);
    int r = answer(a, &body, err);
    buf_done(&body);
    return r;
}

static int answer_stats(const struct asked *a, struct err *err)
{
    struct buf body = BUF_INIT(SIZE_MAX / 2);
    if (check_reads(a->session, err) < 0)
        return err->code;
    stats_report_group(a->group, &body);
    int r = answer(a, &body, err);
    buf_done(&body);
    return r;
}

// From now on the client gets lines of the group's ranks; with {"listen": false} it gets no more.
static int answer_output(const struct asked *asked, struct err *err)
{
    struct session *s = asked->session;
    const struct record_call *parts = asked->parts;
    struct arena a = ARENA_INIT;
    struct json *args = NULL;
    if (parts->args_len && json_parse(parts->args, parts->args_len, NULL, &a, &args, err) < 0)
        err_wrap(err, "the arguments of group.output");
    else if (json_is_false(json_get(args, "listen")))
        output_unlisten(s, asked->group);
    else
        (void)output_listen(s, asked->group, err);
    arena_done(&a);
    if (!err->code)
        session_answer(s, asked->h->call, "null", 4);
    return err->code;
}

static int begin_kill(const struct asked *a, struct err *err)
{
    return a->h->flags & RECORD_MORE ? ROUTER_COLLECT : kill_begin(a->session, a->group, a->h, a->head, err);
}

static const struct method {
    const char *name;
    int (*begin)(const struct asked *a, struct err *err);
} methods[] = {{PREFIX "info", answer_info},
               {PREFIX "stats", answer_stats},
               {PREFIX "output", answer_output},
               {PREFIX "kill", begin_kill}};

static const struct method *find(const struct call_head *head)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (call_head_method_is(head, methods[i].name))
            return &methods[i];
    return NULL;
}

bool group_request_is(const struct call_head *head)
{
    return head->method_len > strlen(PREFIX) && memcmp(head->method, PREFIX, strlen(PREFIX)) == 0 &&
           (find(head) || group_change_kind_of(head->method, head->method_len));
}

int group_request_begin(struct session *s, const struct record *rec, const struct call_head *head,
                        const struct record_call *parts, struct err *err)
{
    enum group_change_kind change = group_change_kind_of(head->method, head->method_len);
    if (change && (rec->h.flags & RECORD_MORE))
        return ROUTER_COLLECT;
    if (change)
        return group_change_begin(s, change, rec->h.call, parts->args, parts->args_len, err);
    struct group *g = session_group(s, head, err);
    return g ? find(head)->begin(&(struct asked){s, &rec->h, head, parts, g}, err) : err->code;
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
