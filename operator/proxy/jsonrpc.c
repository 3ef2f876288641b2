// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "operator/proxy/call_failure.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/jsonrpc_call.h"
#include "operator/proxy/tenant.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_COST = 128, ENVELOPE_MAX = TEXT_COST + JSONRPC_ID_MAX + 64 }; // TEXT_COST: also where it waits next

enum { PARSE_ERROR = -32700, INVALID_REQUEST = -32600, NO_METHOD = -32601, INVALID_PARAMS = -32602, INTERNAL = -32603 };

struct text {
    struct list link;
    size_t len, charged;
    char *text;
};

struct entry { // a request in flight
    uint32_t call;
    char id[]; // as written; "" = a notification, which gets no answer
};

void jsonrpc_init(struct jsonrpc *j, struct router *r, const char *ns, const char *group, size_t max_bytes, void *owner)
{
    *j = (struct jsonrpc){.message = xmalloc(RECORD_MESSAGE)};
    record_writer_init(&j->out, max_bytes);
    list_init(&j->texts);
    j->session = session_new(r, ns, group, &j->out, owner);
    j->session->whole = true;
    record_reader_init(&j->reader, &(struct record_reader_config){.whole = true, .max_body = max_bytes});
}

static char *take_text(struct jsonrpc *j, size_t *ret_len)
{
    struct text *t = CONTAINER_OF(list_pop(&j->texts), struct text, link);
    char *text = t->text;
    *ret_len = t->len;
    quota_refund(j->session->quota, t->charged);
    free(t);
    return text;
}

static void drop_texts(struct jsonrpc *j)
{
    size_t len;
    while (!list_empty(&j->texts))
        free(take_text(j, &len));
}

void jsonrpc_done(struct jsonrpc *j)
{
    drop_texts(j);
    session_end(TAKE_PTR(j->session));
    record_writer_done(&j->out);
    record_reader_done(&j->reader);
    for (uint32_t i = 0; i < j->by_call.size; i++)
        free(j->by_call.slots[i].value);
    idmap_done(&j->by_call);
    map_done(&j->by_text);
    free(j->message);
}

bool jsonrpc_idle(const struct jsonrpc *j)
{
    return j->by_call.used == 0 && list_empty(&j->texts);
}

// Answers

static void envelope_begin(struct json_writer *w, const char *id)
{
    writer_init(w, 0);
    writer_object(w, NULL);
    writer_str(w, "jsonrpc", "2.0");
    writer_raw(w, "id", id, strlen(id));
}

// Until it is taken its namespace pays for it. A long result for which there is no room becomes an error, which is
// short enough to be kept in any case.
static void envelope_end(struct jsonrpc *j, struct json_writer *w)
{
    writer_object_end(w);
    struct text *t = xmalloc(sizeof *t);
    size_t cost = w->buf.len + TEXT_COST;
    t->charged = quota_charge(j->session->quota, cost) ? cost : 0;
    t->len = w->buf.len;
    t->text = buf_take(&w->buf);
    writer_done(w);
    list_append(&j->texts, &t->link);
    peer_changed(&j->session->peer);
}

static void put_error(struct jsonrpc *j, const char *id, int code, const char *message, const struct record *data)
{
    struct json_writer w;
    if (!id[0])
        return;
    envelope_begin(&w, id);
    writer_object(&w, "error");
    writer_i64(&w, "code", code);
    writer_str(&w, "message", message);
    if (data)
        writer_raw(&w, "data", data->body, data->len);
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

// The codes of the standard where one fits, else -32000 and the number of the error.
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
    return -32000; // the method's own
}

static void answer_result(struct jsonrpc *j, const char *id, const char *body, size_t len)
{
    struct json_writer w;
    if (!id[0])
        return;
    // It came from a user's worker: nothing in it may end the envelope, or be what the client cannot read.
    if (!json_valid(body, len)) {
        bool batch = batch_is_safetensors(body, len) || body_list_is(body, len);
        refuse(j, id, INTERNAL, "the method ran, but the result that a worker sent is %s (%zu bytes)",
               batch ? "a batch of tensors, which only clients of cadre.v1 can read" : "not JSON", len);
        return;
    }
    if (quota_left(j->session->quota) < len + ENVELOPE_MAX) {
        struct err why = ERR_INIT;
        tenant_explain(j->session->tenant, j->session->quota, &why);
        refuse(j, id, code_of(err_name(why.code)), "the method ran, but its result of %zu bytes was dropped: %s", len,
               why.msg);
        return;
    }
    envelope_begin(&w, id);
    writer_raw(&w, "result", body, len);
    envelope_end(j, &w);
}

static struct entry *entry_new(struct jsonrpc *j, const char *id)
{
    struct entry *e = xcalloc(1, sizeof *e + strlen(id) + 1);
    do {
        e->call = ++j->last_call;
    } while (!e->call || idmap_get(&j->by_call, e->call));
    memcpy(e->id, id, strlen(id));
    idmap_add(&j->by_call, e->call, e);
    if (id[0])
        map_set(&j->by_text, id, e);
    return e;
}

// What ranks print: a notification.
static void notify(struct jsonrpc *j, const struct record *r)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_str(&w, "jsonrpc", "2.0");
    writer_str(&w, "method", "group.output");
    writer_raw(&w, "params", r->body, r->len);
    envelope_end(j, &w);
}

static void answer(struct jsonrpc *j, const struct record *r)
{
    struct entry *e = idmap_del(&j->by_call, r->h.call);
    struct failure f;
    assert(e);
    if (e->id[0])
        map_del(&j->by_text, e->id);
    if (r->h.type == RECORD_RESULT) {
        answer_result(j, e->id, r->body, r->len);
    } else {
        failure_decode(&f, r->body, r->len);
        put_error(j, e->id, code_of(f.code), f.message, r);
    }
    free(e);
}

char *jsonrpc_next(struct jsonrpc *j, size_t *ret_len)
{
    struct record r;
    struct err err = ERR_INIT;
    while (list_empty(&j->texts)) {
        size_t n = record_writer_fill(&j->out, j->message, RECORD_MESSAGE);
        const char *p = j->message;
        if (!n)
            return NULL;
        int got;
        while ((got = record_reader_next(&j->reader, &p, &n, &r, &err)) > 0)
            r.h.type == RECORD_OUTPUT ? notify(j, &r) : answer(j, &r);
        assert(got == 0); // they are our own
        session_flow(j->session);
    }
    return take_text(j, ret_len);
}

// Requests

static void submit(struct jsonrpc *j, const char *id, struct record *r)
{
    struct err err = ERR_INIT;
    r->h.call = entry_new(j, id)->call;
    if (!id[0])
        r->h.flags = RECORD_QUIET;
    int got = session_record(j->session, r, UINT64_MAX, &err);
    assert(got == 0); // the id is new
    (void)got;
    blob_unref(r->blob);
}

static void do_call(struct jsonrpc *j, const char *id, const char *method, const struct json *params)
{
    struct err err = ERR_INIT;
    struct record r = {.seq = 1};
    if (jsonrpc_call_encode(method, params, j->trace, j->session->quota, &r, &err) < 0)
        refuse(j, id, code_of(err_name(err.code)), "%s", err.msg);
    else
        submit(j, id, &r);
}

// What the operator does and no worker.
static void do_group_change(struct jsonrpc *j, const char *id, const char *method, const struct json *params)
{
    struct err err = ERR_INIT;
    struct record r = {.seq = 1};
    if (jsonrpc_group_change_encode(method, params, j->session->quota, &r, &err) < 0)
        refuse(j, id, code_of(err_name(err.code)), "%s", err.msg);
    else
        submit(j, id, &r);
}

static const struct json *member(const struct json *v, const char *name) // may be null
{
    JSON_FOREACH(m, v)
        if (json_key_is(m, name))
            return m;
    return NULL;
}

// A string or number, copied as it is written. False: there is something else.
static bool read_id(const struct json *v, char out[JSONRPC_ID_MAX + 1])
{
    if (!v || (v->type != JSON_STRING && v->type != JSON_NUMBER) || v->len > JSONRPC_ID_MAX)
        return false;
    memcpy(out, v->text, v->len);
    out[v->len] = 0;
    return true;
}

static void do_cancel(struct jsonrpc *j, const char *id, const struct json *params)
{
    char text[JSONRPC_ID_MAX + 1];
    struct err err = ERR_INIT;
    if (!read_id(member(params, "id"), text)) {
        refuse(j, id, INVALID_PARAMS, "group.cancel needs \"id\", the id of the request to cancel");
        return;
    }
    const struct entry *e = map_get(&j->by_text, text);
    if (e)
        (void)session_record(j->session,
                             &(struct record){.h = {.type = RECORD_CANCEL, .call = e->call, .rank = RECORD_GROUP}},
                             UINT64_MAX, &err);
    answer_result(j, id, e ? "true" : "false", e ? 4 : 5);
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
    else if (group_change_method(method))
        do_group_change(j, id, method, params);
    else
        refuse(j, id, NO_METHOD,
               "there is no method %.100s; there are group.call, group.info, group.stats, group.output, group.kill, "
               "group.cancel, "
               "group.create, group.delete, group.restart, group.bundles, object.put, object.get, object.pin and "
               "object.free",
               method);
}

void jsonrpc_input(struct jsonrpc *j, const char *text, size_t len)
{
    static const char *const bulk[] = {"args", "perRank", "value", NULL};
    char id[JSONRPC_ID_MAX + 1] = "";
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    if (json_parse(text, len, bulk, &a, &root, &err) < 0)
        refuse(j, "null", PARSE_ERROR, "%s", err.msg);
    else if (root->type == JSON_LIST)
        refuse(j, "null", INVALID_REQUEST,
               "batches are not supported: send requests one by one; many can be in progress");
    else if (root->type != JSON_OBJECT)
        refuse(j, "null", INVALID_REQUEST, "a request is an object, not a %s", json_type_name(root->type));
    else if (member(root, "id") && !read_id(member(root, "id"), id))
        refuse(j, "null", INVALID_REQUEST, "\"id\" must be a string or a number of at most %d bytes", JSONRPC_ID_MAX);
    else
        do_request(j, id, root, &a);
    arena_done(&a);
}
