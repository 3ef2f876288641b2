// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_request.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/wire/record.h"
#include "common/wire/traceparent.h"
#include "common/wire/via.h"
#include "common/ws/memory.h"
#include "worker/host/arg_refs.h"
#include "worker/host/cow_args.h"
#include "worker/host/crash.h"
#include "worker/host/host_call_run.h"
#include "worker/host/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// owner: NULL, or the owner before it got the answer.
static void destroy(struct host_request *r, struct request_owner *owner)
{
    loop_timer_free(r->deadline);
    call_done(&r->call);
    cow_args_end(r->cow_args);
    arg_refs_free(r->refs);
    blob_unref(r->body);
    blob_unref(r->tail);
    area_unref(r->area);
    if (owner)
        free_list_give(&owner->unused, r);
    else
        free(r);
}

// The owner has its answer, or wants none any more.
static void part(struct host_request *r)
{
    r->owner = NULL;
    loop_timer_free(TAKE_PTR(r->deadline));
}

static void answer_error(struct host_request *r, int code, const char *message)
{
    _cleanup_(buf_done) struct buf body = BUF_INIT(8 * CALL_MESSAGE_MAX);
    call_encode_error(&body, err_name(code), message, r->submitted);
    r->owner->answer(r->owner, r, false, &body);
    part(r);
}

// Returns true if the method has not begun, and never will.
static bool withdraw(struct host_request *r)
{
    if (r->submitted && !method_executor_withdraw(r->owner->executor, &r->job))
        return false;
    r->submitted = false; // so that the error says that the method has not run
    return true;
}

// Fetches the objects that its arguments refer to. Returns false if the method must not run.
static bool fetch(struct host_request *r)
{
    struct err err = ERR_INIT;
    const char *args;
    size_t len;
    struct region *values;
    if (!r->refs)
        return true;
    method_executor_waits();
    int code = arg_refs_fetch(r->refs, &r->call.canceled, &args, &len, &values, &err);
    if (code < 0) {
        r->call.loss = code == ERR_GONE ? arena_strdup(&r->call.arena, err.msg) : NULL;
        err_wrap(&err, "%s() was not run", r->what.method->name);
        call_refuse(&r->call, &err);
        return false;
    }
    if (values)
        call_set_device_args(&r->call, args, len, values);
    else
        call_set_args(&r->call, args, len);
    return true;
}

bool host_request_begin(struct host_request *r)
{
    crash_prepare_thread();
    return fetch(r);
}

void host_request_fail(struct host_request *r, const char *name, const char *cause, bool ran)
{
    call_note_loss(&r->call);
    r->call.ran = ran;
    r->call.failed = true;
    r->call.code = name ? arena_strdup(&r->call.arena, name) : "FAILED";
    r->call.cause = cause && strlen(cause) <= CALL_CAUSE_MAX ? arena_strdup(&r->call.arena, cause) : NULL;
}

struct cow_args *host_request_own_args(struct host_request *r)
{
    bool shared = r->tail && r->tail->area && !r->refs;
    r->cow_args = shared ? cow_args_new(r->tail->area, r->call.args, r->call.args_len) : NULL;
    return r->cow_args;
}

void host_request_end(struct host_request *r)
{
    cow_args_settle(r->cow_args);
    nested_end(&r->call.nested);
}

static void run(struct executor_job *job)
{
    struct host_request *r = CONTAINER_OF(job, struct host_request, job);
    if (!host_request_begin(r))
        return;
    crash_doing(r->what.role->class->name, r->what.method->name, r->call.trace);
    call_run(&r->call, r->what.method, instance_self(r->what.role->instance));
    crash_doing(NULL, NULL, NULL);
    if (r->call.failed)
        call_note_loss(&r->call);
}

// Keeps the result here. Returns false if this fails; the body is an error then.
static bool keep(struct host_request *r, struct buf *body)
{
    struct err err = ERR_INIT;
    int code = r->owner->objects
                   ? objects_keep(r->owner->objects, r->owner, r->what.pin, body, r->call.device.result, &err)
                   : err_set(&err, ERR_INVALID, "nothing is kept here");
    if (code == 0)
        return true;
    err_wrap(&err, "%s() ran, but its result cannot stay here", r->what.method->name);
    buf_reset(body);
    call_encode_error(body, err_name(code), err.msg, true);
    return false;
}

static void done(struct executor_job *job)
{
    char why[512];
    struct host_request *r = CONTAINER_OF(job, struct host_request, job);
    struct request_owner *owner = r->owner;
    if (owner) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(CALL_RESULT_MAX);
        bool ok = call_encode(&r->call, &body);
        if (ok && r->what.keep && !r->quiet)
            ok = keep(r, &body);
        owner->answer(owner, r, ok, &body);
        part(r);
    }
    if (r->call.loss) {
        snprintf(why, sizeof why, "%s.%s: %s", r->what.role->class->name, r->what.method->name, r->call.loss);
        rank_device_lost(r->call.device.rank, why);
    }
    destroy(r, owner);
}

static void on_deadline(void *ctx)
{
    struct host_request *r = ctx;
    char message[256];
    bool idle = withdraw(r);
    call_cancel(&r->call);
    snprintf(message, sizeof message, "%s(): the deadline of %" PRId64 " ms passed %s", r->what.method->name,
             r->what.timeout_ms, idle ? "before it could begin" : "while it ran; it goes on until it notices");
    if (!idle)
        crash_late(r->what.role->class->name, r->what.method->name, clock_mono_ms(&clock_system));
    answer_error(r, ERR_TIMEOUT, message);
    if (idle)
        destroy(r, NULL);
}

struct method_lane { // of the method that wants to run
    const struct request_owner *owner;
    unsigned lane;
};

static bool uses_the_thread(void *ctx, const char *role, const char *method)
{
    const struct method_lane *wanted = ctx;
    struct err ignored = ERR_INIT;
    const struct role *other = roles_find(wanted->owner->roles, role, &ignored);
    return other && instance_lane(other->instance, method) == wanted->lane;
}

// A method that waits for this call may occupy the only thread that this call could run on.
static int check_cycle(const struct request_owner *owner, const struct request_what *what, const struct call_head *head,
                       struct arena *a, struct err *err)
{
    struct method_lane wanted = {owner, instance_lane(what->role->instance, what->method->name)};
    struct via_entry here;
    struct json *via;
    if (!head->via || !owner->client || !nested_client_where(owner->client, &here.ns, &here.group, &here.rank) ||
        method_executor_lane_size(owner->executor, wanted.lane) > 1)
        return 0;
    if (json_parse(head->via, head->via_len, NULL, a, &via, err) < 0)
        return err->code;
    int at = via_find(via, &here, a, uses_the_thread, &wanted);
    if (at < 0)
        return 0;
    _cleanup_(buf_done) struct buf way = BUF_INIT(512);
    via_print(via, at, a, &way);
    err_set(err, ERR_CONFLICT,
            "a deadlock: %s() would wait for the thread of rank %d of %s/%s, which waits for it (%s); a concurrency "
            "group gives it a thread of its own",
            what->method->name, here.rank, here.ns, here.group, buf_str(&way));
    return err->code;
}

static int read_what(const struct request_owner *owner, const struct call_head *head, struct request_what *ret,
                     struct err *err)
{
    _cleanup_(arena_done) struct arena a;
    _Alignas(max_align_t) char memory[1024];
    arena_init_in(&a, memory, sizeof memory);
    const char *role = head->role ? arena_strndup(&a, head->role, head->role_len) : NULL;
    *ret = (struct request_what){.timeout_ms = head->timeout_ms, .keep = head->keep, .pin = head->pin};
    ret->role = roles_find(owner->roles, role, err);
    if (ret->role)
        ret->method = module_method(ret->role->class, arena_strndup(&a, head->method, head->method_len), err);
    return ret->method ? check_cycle(owner, ret, head, &a, err) : err->code;
}

int host_request_new(struct request_owner *owner, uint32_t id, uint64_t seq, const struct call_head *head,
                     struct blob *body, struct blob *tail, struct host_request **ret, struct err *err)
{
    struct record_call parts;
    struct request_what what;
    if (record_call_decode(body->data, body->len, &parts, err) < 0 || read_what(owner, head, &what, err) < 0)
        return err->code;
    struct host_request *q = free_list_take(&owner->unused, sizeof *q);
    memset(q, 0, offsetof(struct host_request, call));
    q->id = id;
    q->seq = seq;
    q->owner = owner;
    q->what = what;
    q->job = (struct executor_job){.run = run,
                                   .done = done,
                                   .lane = instance_lane(what.role->instance, what.method->name),
                                   .pulled = !what.method->run};
    q->body = blob_ref(body);
    q->tail = tail ? blob_ref(tail) : NULL;
    list_init(&q->link);
    call_init(&q->call, tail ? tail->data : parts.args, tail ? tail->len : parts.args_len);
    q->call.nested = (struct nested){.client = owner->client,
                                     .rendezvous = owner->objects ? owner->objects->config.rendezvous : NULL,
                                     .progress = owner->objects ? owner->objects->config.progress : NULL,
                                     .role = what.role->name,
                                     .via = head->via,
                                     .via_len = head->via_len,
                                     .deadline = what.timeout_ms ? clock_mono_ms(&clock_system) + what.timeout_ms : 0};
    traceparent_copy(q->call.trace, head->trace, head->trace ? TRACEPARENT_LEN : 0);
    q->call.device.rank = owner->objects ? owner->objects->config.device : NULL;
    q->call.keep = what.keep;
    if (owner->memory && !what.keep) { // a result that is kept is not sent
        q->area = area_ref(memory_area(owner->memory));
        q->call.pool = memory_pool(owner->memory);
    }
    if (what.timeout_ms) {
        q->deadline = loop_timer_new(owner->loop, on_deadline, q);
        loop_timer_arm(q->deadline, what.timeout_ms);
    }
    *ret = q;
    return 0;
}

int host_request_fetch_args(struct host_request *r, struct err *err)
{
    return r->owner->objects ? arg_refs_new(r->owner->objects, r->call.args, r->call.args_len, &r->refs, err)
                             : err_set(err, ERR_INVALID, "no references are understood here");
}

void host_request_start(struct host_request *r)
{
    struct err err = ERR_INIT;
    if (method_executor_submit(r->owner->executor, &r->job, &err) == 0) {
        r->submitted = true;
        return;
    }
    answer_error(r, err.code, err.msg);
    destroy(r, NULL);
}

void host_request_cancel(struct host_request *r, int code, const char *why)
{
    call_cancel(&r->call);
    if (!withdraw(r))
        return;
    answer_error(r, code, why);
    destroy(r, NULL);
}

void host_request_abandon(struct host_request *r)
{
    bool idle = withdraw(r);
    call_cancel(&r->call);
    list_remove(&r->link);
    part(r);
    if (idle)
        destroy(r, NULL);
}
