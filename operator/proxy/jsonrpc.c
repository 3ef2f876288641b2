// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "operator/proxy/call_failure.h"
#include "operator/proxy/jsonrpc_call.h"
#include "operator/proxy/tenant.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARSE_ERROR = -32700, INVALID_REQUEST = -32600, NO_METHOD = -32601, INVALID_PARAMS = -32602, INTERNAL = -32603 };

struct text {
    struct list link;
    struct parts parts;
};

struct jsonrpc_request { // a request in flight
    uint32_t call;
    char id[]; // as the client wrote it; "" = a notification, which gets no answer
};

void jsonrpc_init(struct jsonrpc *j, struct router *r, const char *ns, const char *group, size_t max_bytes, void *owner)
{
    *j = (struct jsonrpc){0};
    record_writer_init(&j->out, max_bytes);
    list_init(&j->texts);
    j->session = session_new(r, ns, group, &j->out, owner);
    j->session->whole = true;
}

static struct parts take_text(struct jsonrpc *j)
{
    struct text *t = CONTAINER_OF(list_pop(&j->texts), struct text, link);
    struct parts parts = t->parts;
    free(t);
    return parts;
}

void jsonrpc_done(struct jsonrpc *j)
{
    while (!list_empty(&j->texts)) {
        struct parts text = take_text(j);
        parts_done(&text);
    }
    parts_done(&j->body);
    jsonrpc_message_done(&j->message);
    session_end(TAKE_PTR(j->session));
    record_writer_done(&j->out);
    for (uint32_t i = 0; i < j->by_call.size; i++)
        free(j->by_call.entries[i].value);
    idmap_done(&j->by_call);
    map_done(&j->by_text);
}

bool jsonrpc_busy(const struct jsonrpc *j)
{
    return j->busy || jsonrpc_reads(j);
}

bool jsonrpc_reads(const struct jsonrpc *j)
{
    return j->message.blob;
}

bool jsonrpc_idle(const struct jsonrpc *j)
{
    return j->by_call.used == 0 && list_empty(&j->texts) && !jsonrpc_reads(j);
}

// Answers

// `id`: NULL = a notification.
static void envelope_begin(struct json_writer *w, const char *id)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "jsonrpc", "2.0");
    if (id)
        writer_raw(w, "id", id, strlen(id));
}

static void put_text(struct jsonrpc *j, struct parts *parts)
{
    struct text *t = xmalloc(sizeof *t);
    t->parts = *parts;
    list_append(&j->texts, &t->link);
    peer_changed(&j->session->peer);
}

// The namespace pays for the text until it is sent. The text is short, and is kept even if there is no room.
static void envelope_end(struct jsonrpc *j, struct json_writer *w)
{
    struct parts text = {0};
    writer_object_end(w);
    parts_add_copy(&text, w->buf.data, w->buf.len, j->session->quota);
    writer_done(w);
    put_text(j, &text);
}

// `body`: of an ERROR, or NULL.
static void put_error(struct jsonrpc *j, const char *id, int code, const char *message, struct parts *body)
{
    struct json_writer w;
    size_t len;
    if (!id[0])
        return;
    envelope_begin(&w, id);
    writer_object(&w, "error");
    writer_i64(&w, "code", code);
    writer_str(&w, "message", message);
    if (body) {
        const char *data = parts_look(body, &len);
        writer_raw(&w, "data", data, len);
    }
    writer_object_end(&w);
    envelope_end(j, &w);
}

static void refuse(struct jsonrpc *j, const char *id, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void refuse(struct jsonrpc *j, const char *id, int code, const char *fmt, ...)
{
    char message[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    put_error(j, id, code, message, NULL);
}

// The standard's code if there is one, else -32000 minus the number of the error.
static int code_of(const char *name)
{
    if (str_eq(name, err_name(ERR_INVALID)))
        return INVALID_PARAMS;
    if (str_eq(name, err_name(ERR_INTERNAL)))
        return INTERNAL;
#define X(error, number, text) \
    if (str_eq(name, #error))  \
        return -32000 - (number);
    ERR_CODES(X)
#undef X
    return -32000; // the method's own error
}

// The result came from a user's worker. look() has checked it: nothing in it may end the envelope, or be unreadable for
// the client.
static void answer_result(struct jsonrpc *j, const char *id, struct parts *body)
{
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":";
    char envelope[sizeof head + JSONRPC_ID_MAX];
    struct parts text = {0};
    size_t len = 0;
    if (!id[0])
        return;
    if (j->broken) {
        parts_rewind(body);
        const char *data = parts_look(body, &len);
        bool batch = data && (batch_is_safetensors(data, len) || body_list_is(data, len));
        refuse(j, id, INTERNAL, "the method ran, but the result that a worker sent is %s (%zu bytes)",
               batch ? "a batch of tensors, which only clients of cadre.v1 can read" : "not JSON", body->len);
        return;
    }
    int n = snprintf(envelope, sizeof envelope, head, id);
    parts_rewind(body);
    parts_add_copy(&text, envelope, (size_t)n, j->session->quota);
    parts_move(&text, body);
    parts_add_copy(&text, "}", 1, j->session->quota);
    put_text(j, &text);
}

static struct jsonrpc_request *request_new(struct jsonrpc *j, const char *id)
{
    struct jsonrpc_request *q = xcalloc(1, sizeof *q + strlen(id) + 1);
    do {
        q->call = ++j->last_call;
    } while (!q->call || idmap_get(&j->by_call, q->call));
    memcpy(q->id, id, strlen(id));
    idmap_add(&j->by_call, q->call, q);
    if (id[0])
        map_set(&j->by_text, id, q);
    return q;
}

// Writes what ranks print as a notification.
static void notify(struct jsonrpc *j)
{
    struct json_writer w;
    size_t len;
    const char *body = parts_look(&j->body, &len);
    envelope_begin(&w, NULL);
    writer_str(&w, "method", "group.output");
    writer_raw(&w, "params", body, len);
    envelope_end(j, &w);
}

static void answer(struct jsonrpc *j)
{
    struct jsonrpc_request *q = idmap_del(&j->by_call, j->head.call);
    struct call_failure f;
    size_t len;
    assert(q);
    if (q->id[0])
        map_del(&j->by_text, q->id);
    if (j->head.type == RECORD_RESULT) {
        answer_result(j, q->id, &j->body);
    } else {
        const char *body = parts_look(&j->body, &len);
        call_failure_decode(&f, body, len);
        put_error(j, q->id, code_of(f.code), f.message, &j->body);
    }
    free(q);
}

static bool take_next(struct jsonrpc *j)
{
    if (!record_writer_take(&j->out, &j->head, &j->body))
        return false;
    session_flow(j->session);
    j->check = (struct json_check){0};
    j->broken = false;
    return true;
}

// Checks a result. False: the namespace has used up its part of the turn, and there is more to check.
static bool look(struct jsonrpc *j)
{
    struct tenant *t = j->session->tenant;
    for (size_t n; !j->broken && parts_look(&j->body, &n); parts_skip(&j->body, n)) {
        if (!tenant_has_turn(t))
            return false;
        n = MIN(n, tenant_slice(t));
        tenant_spend(t, n / TENANT_UNIT_BYTES);
        j->broken = !json_check_feed(&j->check, parts_own(&j->body, n, j->session->quota), n);
    }
    j->broken = j->broken || !json_check_ends(&j->check);
    return true;
}

// Requests

static void do_call(struct jsonrpc *j, const char *id, const char *method, const struct json *params)
{
    struct err err = ERR_INIT;
    struct record r = {.seq = 1};
    if (jsonrpc_call_encode(method, params, j->trace, j->message.blob, j->session->quota, &r, &err) < 0) {
        refuse(j, id, code_of(err_name(err.code)), "%s", err.msg);
        return;
    }
    r.h.call = request_new(j, id)->call;
    if (!id[0])
        r.h.flags = RECORD_QUIET;
    int got = session_record(j->session, &r, UINT64_MAX, &err);
    assert(got == 0); // the id is new
    (void)got;
    blob_unref(r.blob);
}

static const struct json *member(const struct json *v, const char *name) // v may be null
{
    JSON_FOREACH(m, v)
        if (json_key_is(m, name))
            return m;
    return NULL;
}

// Copies a string or number as it is written. False: it is something else.
static bool read_id(const struct json *v, char out[JSONRPC_ID_MAX + 1])
{
    if (!v || (v->type != JSON_STRING && v->type != JSON_NUMBER) || v->len > JSONRPC_ID_MAX)
        return false;
    memcpy(out, v->text, v->len);
    out[v->len] = 0;
    return true;
}

static void put_bool(struct jsonrpc *j, const char *id, bool result)
{
    struct json_writer w;
    if (!id[0])
        return;
    envelope_begin(&w, id);
    writer_bool(&w, "result", result);
    envelope_end(j, &w);
}

static void do_cancel(struct jsonrpc *j, const char *id, const struct json *params)
{
    char text[JSONRPC_ID_MAX + 1];
    struct err err = ERR_INIT;
    if (!read_id(member(params, "id"), text)) {
        refuse(j, id, INVALID_PARAMS, "group.cancel needs \"id\", the id of the request to cancel");
        return;
    }
    const struct jsonrpc_request *q = map_get(&j->by_text, text);
    if (q)
        (void)session_record(j->session,
                             &(struct record){.h = {.type = RECORD_CANCEL, .call = q->call, .rank = RECORD_GROUP}},
                             UINT64_MAX, &err);
    put_bool(j, id, q != NULL);
}

static void do_request(struct jsonrpc *j, const char *id, const struct json *root, struct arena *a)
{
    const char *method = json_str(member(root, "method"), a);
    const struct json *params = member(root, "params");
    if (!json_str_is(json_get(root, "jsonrpc"), "2.0") || !method)
        refuse(j, id, INVALID_REQUEST, "a request needs \"jsonrpc\": \"2.0\" and a \"method\"");
    else if (id[0] && map_has(&j->by_text, id))
        refuse(j, id, INVALID_REQUEST, "id %s is in use by a request that is not answered", id);
    else if (params && params->type != JSON_OBJECT)
        refuse(j, id, INVALID_PARAMS, "\"params\" must be an object");
    else if (jsonrpc_call_is(method))
        do_call(j, id, method, params);
    else if (str_eq(method, "group.cancel"))
        do_cancel(j, id, params);
    else
        refuse(j, id, NO_METHOD,
               "there is no method %.100s; there are group.call, group.info, group.stats, group.output, group.kill, "
               "group.cancel, group.create, group.renew, group.delete, group.restart, group.bundles, group.capacity, "
               "object.put, object.get, object.pin and object.free",
               method);
}

// Only args, perRank, value and params have a reason to be long.
static int check_lengths(const struct json *root, struct err *err)
{
    JSON_FOREACH(v, root)
        if (v->len > JSONRPC_HEAD_MAX && !json_key_is(v, "params"))
            return err_set(err, ERR_INVALID, "\"%.*s\" of a request has %u bytes; at most %d",
                           (int)MIN(v->key_len, 100u), v->key, v->len, JSONRPC_HEAD_MAX);
    return 0;
}

static void take_message(struct jsonrpc *j, const struct jsonrpc_message *m)
{
    char id[JSONRPC_ID_MAX + 1] = "";
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    if (jsonrpc_message_parse(m, &a, &root, &err) < 0)
        refuse(j, "null", PARSE_ERROR, "%s", err.msg);
    else if (root->type == JSON_LIST)
        refuse(j, "null", INVALID_REQUEST,
               "batches are not supported: send requests one by one; many can be in progress");
    else if (root->type != JSON_OBJECT)
        refuse(j, "null", INVALID_REQUEST, "a request is an object, not a %s", json_type_name(root->type));
    else if (check_lengths(root, &err) < 0)
        refuse(j, "null", INVALID_REQUEST, "%s", err.msg);
    else if (member(root, "id") && !read_id(member(root, "id"), id))
        refuse(j, "null", INVALID_REQUEST, "\"id\" must be a string or a number of at most %d bytes", JSONRPC_ID_MAX);
    else
        do_request(j, id, root, &a);
}

void jsonrpc_input(struct jsonrpc *j, const char *text, size_t len)
{
    take_message(j, &(struct jsonrpc_message){.text = text, .len = len});
}

void jsonrpc_input_long(struct jsonrpc *j, struct blob *blob, const char *text, size_t len)
{
    assert(!jsonrpc_reads(j));
    if (len > JSON_LEN_MAX)
        refuse(j, "null", PARSE_ERROR, "the JSON has %zu bytes; the limit is %d", len, JSON_LEN_MAX);
    else if (blob_recharge(blob, j->session->quota))
        jsonrpc_message_begin(&j->message, blob, text, len);
    else
        refuse(j, "null", code_of(err_name(ERR_LIMIT)),
               "no room for a message of %zu bytes: too many calls wait already", len);
}

// Continues to read a long message. Once it is whole, it is a request like any other.
static void read_on(struct jsonrpc *j)
{
    struct err err = ERR_INIT;
    int r = jsonrpc_reads(j) ? jsonrpc_message_read(&j->message, j->session->tenant, &err) : 0;
    if (r == 0)
        return;
    if (r < 0)
        refuse(j, "null", PARSE_ERROR, "%s", err.msg);
    else
        take_message(j, &j->message);
    jsonrpc_message_done(&j->message);
}

bool jsonrpc_next(struct jsonrpc *j, struct parts *ret)
{
    read_on(j);
    while (list_empty(&j->texts)) {
        if (!j->busy && !take_next(j))
            return false;
        j->busy = j->head.type == RECORD_RESULT && !look(j);
        if (j->busy)
            return false;
        if (j->head.type == RECORD_OUTPUT)
            notify(j);
        else
            answer(j);
        parts_done(&j->body);
    }
    *ret = take_text(j);
    return true;
}
