// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/delivery.h"

#include "common/base/fiber.h"
#include "common/base/str.h"
#include "operator/proxy/args.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/job.h"
#include "operator/proxy/split_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFERENCES_LONG = 16 << 10 }; // references in arguments longer than this take long to look up

// The input of a delivery, besides the body.
struct delivery_input {
    bool whole, objects; // `objects`: the call is about an object itself, and its reference stays as it is
    struct split_input split;
};

static void input_init(const struct call *c, const struct dispatch_plan *d, struct delivery_input *ret)
{
    const struct request *q = &c->req;
    *ret = (struct delivery_input){.whole = dispatch_plan_is_whole(q, d), .objects = str_starts(q->method, "object.")};
    ret->split = (struct split_input){.group = c->group->key,
                                      .n = d ? d->d.n_pieces : q->world,
                                      .planned = d,
                                      .rows = d && d->d.form == MODE_ROWS,
                                      .positional = q->positional,
                                      .pad = q->pad,
                                      .dispatch = q->dispatch,
                                      .call = {c->router, c->tenant->ns, q->method, q->timeout_ms},
                                      .quota = c->quota,
                                      .marks = c->router->marks};
}

// With the same arguments, both give the same delivery.
static bool input_same(const struct delivery_input *a, const struct delivery_input *b)
{
    return a->whole == b->whole && a->split.n == b->split.n && a->split.planned == b->split.planned &&
           a->split.rows == b->split.rows;
}

// References

// Replaces the arguments. The head of the call stays as it is.
static int replace_args(const struct delivery_input *in, const struct record_call *parts, const struct buf *args,
                        struct blob **ret, struct err *err)
{
    size_t head = 4 + parts->head_len;
    struct blob *b = blob_new(head + args->len, in->split.quota);
    if (!b)
        return err_set(err, ERR_LIMIT, "%s(): no room for its arguments", in->split.call.method);
    memcpy(b->data, parts->head - 4, head);
    fiber_copy(b->data + head, args->data, args->len);
    *ret = b;
    return 0;
}

static int look_up(const struct delivery_input *in, const struct record_call *parts, struct delivery *ret,
                   struct err *err)
{
    _cleanup_(buf_done) struct buf args = BUF_INIT(16 * REF_ARGS_MAX);
    int r = reference_write_all(&in->split.call, parts->args, parts->args_len, &args, &ret->refs, err);
    if (r == 0 && ret->refs)
        r = replace_args(in, parts, &args, &ret->made, err);
    return r;
}

static bool has_refs(bool objects, const struct record_call *parts)
{
    return !objects && ref_mentioned(parts->args, parts->args_len);
}

static int make(struct delivery_input *in, const struct call_body *body, const struct record_call *given,
                struct delivery *ret, struct err *err)
{
    struct record_call parts = *given;
    struct call_body at = *body;
    struct ref_found f;
    int r = 0;
    *ret = (struct delivery){.whole = in->whole};
    if (has_refs(in->objects, &parts)) {
        in->split.ref = ret->refs = !in->whole && ref_is(parts.args, parts.args_len, &f);
        r = in->split.ref ? 0 : look_up(in, &parts, ret, err);
    }
    if (r == 0 && ret->made) {
        at = (struct call_body){ret->made->data, ret->made->len, ret->made};
        r = record_call_decode(at.data, at.len, &parts, err);
    }
    return r < 0 || in->whole ? r : split_make(&in->split, &at, &parts, &ret->split, err);
}

void delivery_done(struct delivery *d)
{
    split_done(&d->split);
    blob_unref(d->made);
    *d = (struct delivery){0};
}

bool delivery_is_plain(const struct call *c, const struct record_call *parts)
{
    return !c->preparation && dispatch_plan_is_whole(&c->req, c->plan) && !ref_mentioned(parts->args, parts->args_len);
}

// Long arguments

struct preparation {
    struct job job;
    struct call *call; // NULL: the call is over
    bool ready;
    struct call_body body;
    struct quota *quota;
    char method[CALL_HEAD_METHOD_MAX + 1], group[GROUP_KEY_SIZE];
    struct delivery_input in;
    struct delivery result;
    bool head;                   // prepares only the head of a batch that passes
    struct split_stream *stream; // the result for `head`
    struct err err;
};

static void preparation_free(struct preparation *p)
{
    delivery_done(&p->result);
    split_stream_free(p->stream);
    blob_unref(p->body.blob);
    quota_unref(p->quota);
    free(p);
}

static void on_work(struct job *j)
{
    struct preparation *p = CONTAINER_OF(j, struct preparation, job);
    const struct call_body body = p->body;
    struct record_call parts;
    const struct delivery_input *in = &p->in;
    if (!p->call || record_call_decode(body.data, body.len, &parts, &p->err) < 0)
        return;
    if (p->head)
        (void)split_stream_make(p->method, in->split.n, in->split.pad, &parts, p->quota, &p->stream, &p->err);
    else
        (void)make(&p->in, &body, &parts, &p->result, &p->err);
}

static void on_done(struct job *j)
{
    struct preparation *p = CONTAINER_OF(j, struct preparation, job);
    p->ready = true;
    if (p->call)
        tenant_look_again(p->call->tenant, p->call->group);
    else
        preparation_free(p);
}

static int plan(const struct call *c, const struct call_body *body, struct record_call *parts,
                struct dispatch_plan **ret, struct err *err)
{
    int r = record_call_decode(body->data, body->len, parts, err);
    return r < 0 ? r : dispatch_plan_make(&c->req, c->group, parts, c->quota, ret, err);
}

static bool is_ready(const struct call *c, const struct dispatch_plan *d, bool head)
{
    const struct preparation *p = c->preparation;
    struct delivery_input now;
    if (!p || !p->ready || p->head != head)
        return false;
    input_init(c, d, &now);
    return input_same(&now, &p->in);
}

// A call that cannot be sent at all takes no time.
static bool takes_long(const struct call *c, const struct call_body *body)
{
    struct dispatch_plan *d = NULL;
    struct err ignored = ERR_INIT;
    struct record_call parts;
    if (plan(c, body, &parts, &d, &ignored) < 0)
        return false;
    bool is_long = has_refs(str_starts(c->req.method, "object."), &parts) ||
                   (parts.args_len > JOB_STEP && !dispatch_plan_is_whole(&c->req, d));
    is_long = is_long && !is_ready(c, d, false);
    dispatch_plan_free(d);
    return is_long;
}

bool delivery_is_long(const struct call *c, const struct call_body *body)
{
    return body->len > REFERENCES_LONG && takes_long(c, body);
}

void delivery_prepare(struct call *c, bool head)
{
    const struct call_body body = args_body(c);
    struct dispatch_plan *d = NULL;
    struct err ignored = ERR_INIT;
    struct record_call parts;
    delivery_forget(c);
    if (plan(c, &body, &parts, &d, &ignored) < 0) {
        tenant_look_again(c->tenant, c->group); // the call fails when it is sent
        return;
    }
    struct preparation *p = xcalloc(1, sizeof *p);
    *p = (struct preparation){.job = {.work = on_work, .done = on_done},
                              .call = c,
                              .body = body,
                              .quota = quota_ref(c->quota),
                              .head = head,
                              .err = ERR_INIT};
    input_init(c, d, &p->in);
    memcpy(p->method, c->req.method, sizeof p->method);
    memcpy(p->group, c->group->key, sizeof p->group);
    p->in.split.call.method = p->method;
    p->in.split.group = p->group;
    dispatch_plan_free(d);
    blob_ref(body.blob);
    c->preparation = p;
    job_begin(&p->job, c->tenant);
}

bool delivery_head_is_long(size_t head)
{
    return head > JOB_STEP;
}

int delivery_take_head(struct call *c, struct dispatch_plan *d, struct split_stream **ret, struct err *err)
{
    *ret = NULL;
    if (!is_ready(c, d, true))
        return 0;
    struct preparation *p = c->preparation;
    *ret = TAKE_PTR(p->stream);
    *err = p->err;
    delivery_forget(c);
    if (*ret && split_stream_aim(*ret, c->req.method, d, err) < 0)
        split_stream_free(TAKE_PTR(*ret));
    return err->code ? err->code : 1;
}

bool delivery_awaited(const struct call *c)
{
    return c->preparation && !c->preparation->ready;
}

void delivery_forget(struct call *c)
{
    struct preparation *p = TAKE_PTR(c->preparation);
    if (!p)
        return;
    p->call = NULL;
    if (p->ready)
        preparation_free(p);
}

int delivery_make(struct call *c, const struct call_body *body, const struct record_call *parts, struct delivery *ret,
                  struct err *err)
{
    struct delivery_input in;
    if (is_ready(c, c->plan, false)) {
        struct preparation *p = c->preparation;
        *ret = p->result;
        p->result = (struct delivery){0};
        *err = p->err;
        delivery_forget(c);
        return err->code;
    }
    input_init(c, c->plan, &in);
    return make(&in, body, parts, ret, err);
}
