// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc_call.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/wire/mode.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/jsonrpc_message.h"

#include <string.h>

// CHANGE: a request that the operator carries out. Its params are its arguments.
enum { CALL = 1, INFO = 2, PUT = 4, REF = 8, KILL = 16, ASK = 32, CHANGE = 64 };

static const struct {
    const char *method;
    unsigned kind;
} methods[] = {{"group.call", CALL},   {"group.info", INFO | ASK}, {"group.stats", INFO},
               {"group.output", INFO}, {"group.kill", KILL},       {"object.put", PUT},
               {"object.get", REF},    {"object.pin", REF},        {"object.free", REF}};

struct params {
    unsigned kind;
    const char *rpc;
    const struct json *method, *args, *per_rank, *rank, *dispatch, *execute;
    const struct json *head[11]; // copied into the head as they are
};

static const struct {
    const char *name;
    size_t offset;
    unsigned kinds;
} known[] = {
    {"method", offsetof(struct params, method), CALL},
    {"args", offsetof(struct params, args), CALL},
    {"value", offsetof(struct params, args), PUT},
    {"ref", offsetof(struct params, args), REF},
    {"from", offsetof(struct params, args), ASK},
    {"perRank", offsetof(struct params, per_rank), CALL | PUT},
    {"rank", offsetof(struct params, rank), CALL | PUT | KILL},
    {"dispatch", offsetof(struct params, dispatch), CALL | PUT},
    {"execute", offsetof(struct params, execute), CALL | PUT},
    {"group", offsetof(struct params, head[0]), CALL | PUT | INFO | KILL},
    {"timeoutMs", offsetof(struct params, head[1]), CALL | PUT | REF | KILL},
    {"attempt", offsetof(struct params, head[2]), CALL | PUT | KILL},
    {"whenNotReady", offsetof(struct params, head[3]), CALL | PUT},
    {"split", offsetof(struct params, head[4]), CALL | PUT},
    {"collect", offsetof(struct params, head[5]), CALL | PUT},
    {"pad", offsetof(struct params, head[6]), CALL},
    {"role", offsetof(struct params, head[7]), CALL},
    {"keep", offsetof(struct params, head[8]), CALL},
    {"pin", offsetof(struct params, head[9]), CALL | PUT},
    {"traceparent", offsetof(struct params, head[10]), CALL},
};

static unsigned kind_of(const char *method)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].method, method) == 0)
            return methods[i].kind;
    return group_change_kind_of(method, strlen(method)) ? CHANGE : 0;
}

bool jsonrpc_call_is(const char *method)
{
    return kind_of(method) != 0;
}

static bool may_be_long(size_t i)
{
    return known[i].offset == offsetof(struct params, args) || known[i].offset == offsetof(struct params, per_rank);
}

static int read_params(const struct json *params, struct params *ret, struct err *err)
{
    JSON_FOREACH(v, params) {
        size_t i = 0;
        while (i < ARRAY_LEN(known) && !(json_key_is(v, known[i].name) && (known[i].kinds & ret->kind)))
            i++;
        if (i == ARRAY_LEN(known))
            return err_set(err, ERR_INVALID, "%s has no parameter \"%.*s\"", ret->rpc, (int)MIN(v->key_len, 100u),
                           v->key);
        if (v->len > JSONRPC_HEAD_MAX && !may_be_long(i))
            return err_set(err, ERR_INVALID, "%s: \"%s\" has %u bytes; at most %d", ret->rpc, known[i].name, v->len,
                           JSONRPC_HEAD_MAX);
        if (v->type != JSON_NULL)
            memcpy((char *)ret + known[i].offset, &v, sizeof v);
    }
    return 0;
}

static int read_mode(const struct json *v, uint8_t (*number)(const char *), void (*list)(struct buf *),
                     const char *what, uint8_t *ret, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(buf_done) struct buf names = BUF_INIT(256);
    *ret = v ? number(json_str(v, &a)) : 0;
    if (!v || *ret)
        return 0;
    list(&names);
    return err_set(err, ERR_INVALID, "\"%s\": there is no mode %.*s; there are %s", what, (int)MIN(v->len, 100u),
                   v->text, buf_str(&names));
}

static int read_header(const struct params *p, struct record_header *h, struct err *err)
{
    int64_t rank;
    *h = (struct record_header){.type = RECORD_CALL, .rank = RECORD_GROUP};
    int r = read_mode(p->dispatch, mode_dispatch, mode_dispatch_list, "dispatch", &h->dispatch, err);
    if (r == 0)
        r = read_mode(p->execute, mode_execute, mode_execute_list, "execute", &h->execute, err);
    if (r < 0)
        return r;
    if (p->rank) {
        if (!json_i64(p->rank, &rank) || rank < 0 || rank >= RECORD_GROUP)
            return err_set(err, ERR_INVALID, "\"rank\" must be the number of a rank");
        h->rank = (uint32_t)rank;
    }
    if (!p->per_rank)
        return 0;
    if (p->args || p->rank || p->dispatch || p->execute)
        return err_set(err, ERR_INVALID, "\"perRank\" cannot be used with args, rank, dispatch or execute");
    h->dispatch = RECORD_ALL_TO_ALL;
    h->execute = RECORD_ALL;
    return 0;
}

static void write_head(const struct params *p, const char *trace, struct json_writer *w)
{
    writer_object(w, NULL);
    if (p->kind != CALL)
        writer_str(w, "method", p->rpc);
    else
        writer_raw(w, "method", p->method->text, p->method->len);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const struct json *v;
        memcpy(&v, (const char *)p + known[i].offset, sizeof v);
        if (v && known[i].offset >= offsetof(struct params, head))
            writer_raw(w, known[i].name, v->text, v->len);
    }
    writer_str_set(w, "traceparent", trace);
    writer_object_end(w);
}

// There is room in front of the arguments for the head (jsonrpc_message.h).
static void encode_in_place(const char *head, size_t head_len, const struct json *args, struct blob *message,
                            struct record *ret)
{
    char *body = message->data + (args->text - message->data) - head_len - 4;
    memcpy(body + 4, head, head_len);
    record_call_prefix(body, (uint32_t)head_len);
    ret->blob = blob_ref(message);
    ret->body = body;
    ret->len = 4 + head_len + args->len;
}

static int encode(const char *head, size_t head_len, const struct json *args, struct blob *message, struct quota *quota,
                  struct record *ret, struct err *err)
{
    size_t args_len = args ? args->len : 0;
    if (head_len + 4 > JSONRPC_HEAD_MAX && args_len >= JSON_LONG)
        return err_set(err, ERR_INVALID,
                       "the request has %zu bytes without its arguments; at most %d in a request this long", head_len,
                       JSONRPC_HEAD_MAX - 4);
    if (message && args && args->text > message->data && args->text < message->data + message->len) {
        encode_in_place(head, head_len, args, message, ret);
        return 0;
    }
    ret->blob = blob_new(4 + head_len + args_len, quota);
    if (!ret->blob)
        return err_set(err, ERR_LIMIT, "no room for its arguments: too many calls wait already");
    record_call_prefix(ret->blob->data, (uint32_t)head_len);
    memcpy(ret->blob->data + 4, head, head_len);
    if (args)
        memcpy(ret->blob->data + 4 + head_len, args->text, args_len);
    ret->body = ret->blob->data;
    ret->len = ret->blob->len;
    return 0;
}

static int check_args(const struct params *p, const struct json *args, struct err *err)
{
    const char *name = p->per_rank ? "perRank" : p->kind == CALL ? "args" : p->kind == PUT ? "value" : "ref";
    bool nested = args && (args->type == JSON_LIST || args->type == JSON_OBJECT);
    if (p->kind == CALL && !p->method)
        return err_set(err, ERR_INVALID, "group.call needs \"method\": the name of a method of the group's class");
    if ((p->kind == PUT || p->kind == REF) && !args)
        return err_set(err, ERR_INVALID, "%s needs \"%s\"", p->rpc, name);
    if (args && !nested && (p->kind == CALL || p->per_rank))
        return err_set(err, ERR_INVALID, "\"%s\" must be a list or an object", name);
    return 0;
}

int jsonrpc_call_encode(const char *method, const struct json *params, const char *trace, struct blob *message,
                        struct quota *quota, struct record *ret, struct err *err)
{
    struct params p = {.kind = kind_of(method), .rpc = method};
    int r = 0;
    if (p.kind == CHANGE)
        p.args = params;
    else
        r = read_params(params, &p, err);
    if (r == 0)
        r = read_header(&p, &ret->h, err);
    const struct json *args = p.per_rank ? p.per_rank : p.args;
    if (r == 0)
        r = check_args(&p, args, err);
    if (r < 0)
        return r;
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    write_head(&p, p.head[10] ? NULL : trace, &w);
    // The router copies what changes a group at once, and decides who pays (group_change.h).
    return encode(w.buf.data, w.buf.len, args, message, p.kind == CHANGE ? NULL : quota, ret, err);
}
