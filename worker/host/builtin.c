// SPDX-License-Identifier: Apache-2.0
#include "worker/host/builtin.h"

#include "common/base/json_writer.h"
#include "worker/host/debug.h"
#include "worker/host/host_body.h"
#include "worker/host/stacks.h"

static void serve_object(struct request_owner *owner, struct quota *quota, const struct call_head *head,
                         struct blob *body, struct blob *tail, struct builtin_answer *ret, struct err *err)
{
    struct record_call call;
    struct blob *whole = tail ? body_join(body, tail, quota) : blob_ref(body); // in this process's own memory
    if (!whole)
        err_set(err, ERR_LIMIT, "%.*s(): no room for %zu bytes", (int)head->method_len, head->method,
                body->len + tail->len);
    else if (record_call_decode(whole->data, whole->len, &call, err) == 0 &&
             objects_serve(owner->objects, owner, head, whole, &call, &ret->object, err) == 0 && !ret->object.blob)
        buf_append(&ret->text, ret->object.text, ret->object.len);
    blob_unref(whole);
}

static void put(struct buf *ret, const char *name, const struct buf *text)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_print(&w, NULL, "{%s:%s}", name, buf_str(text));
    buf_append(ret, buf_str(&w.buf), w.buf.len);
}

static void serve_stacks(struct buf *ret, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(STACKS_MAX);
    if (stacks_read(&text, err) == 0)
        put(ret, "stack", &text);
}

static void serve_debug(const struct blob *body, struct blob *tail, bool code, struct buf *ret, struct err *err)
{
    struct record_call call;
    _cleanup_(buf_done) struct buf text = BUF_INIT(DEBUG_MAX);
    if (tail)
        err_set(err, ERR_LIMIT, "%s: the text is too long", DEBUG_METHOD);
    else if (record_call_decode(body->data, body->len, &call, err) == 0 &&
             debug_turn(call.args, call.args_len, code, &text, err) == 0)
        put(ret, "output", &text);
}

bool builtin_serve(struct request_owner *owner, struct quota *quota, const struct call_head *head, struct blob *body,
                   struct blob *tail, bool code, struct builtin_answer *ret, struct err *err)
{
    *ret = (struct builtin_answer){.text = BUF_INIT(8 * DEBUG_MAX)};
    if (call_head_method_is(head, STACKS_METHOD))
        serve_stacks(&ret->text, err);
    else if (call_head_method_is(head, DEBUG_METHOD))
        serve_debug(body, tail, code, &ret->text, err);
    else if (owner->objects && objects_method(head))
        serve_object(owner, quota, head, body, tail, ret, err);
    else
        return false;
    return true;
}

void builtin_answer_done(struct builtin_answer *answer)
{
    blob_unref(answer->object.blob);
    region_unref(answer->object.values);
    buf_done(&answer->text);
}
