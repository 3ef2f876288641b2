// SPDX-License-Identifier: Apache-2.0
#include "worker/host/request.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "common/wire/via.h"
#include "common/ws/memory.h"
#include "worker/host/borrowed.h"
#include "worker/host/crash.h"
#include "worker/host/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// owner: NULL, or the one that it had.
static void destroy(struct request *r, struct request_owner *owner)
{
    loop_timer_free(r->deadline);
    call_done(&r->call);
    borrowed_free(r->borrowed);
    blob_unref(r->body);
    blob_unref(r->tail);
    area_unref(r->area);
    if (owner)
        reuse_give(&owner->spare, r);
    else
        free(r);
}

// The owner has its answer, or wants none.
static void part(struct request *r)
{
    r->owner = NULL;
    loop_timer_free(TAKE_PTR(r->deadline));
}

static void answer_error(struct request *r, int code, const char *message)
{
    struct buf body = BUF_INIT(8 * CALL_MESSAGE_MAX);
    call_encode_error(&body, err_name(code), message);
    r->owner->answer(r->owner, r, false, &body);
    buf_done(&body);
    part(r);
}

// True: it has not begun, and never will.
static bool withdraw(struct request *r)
{
    return !r->submitted || executor_withdraw(r->owner->executor, &r->job);
}

// What its arguments refer to; false: it does not run.
static bool fetch(struct request *r)
{
    struct err err = ERR_INIT;
    const char *args;
    size_t len;
    if (!r->borrowed)
        return true;
    executor_waits();
    if (borrowed_fetch(r->borrowed, &r->call.canceled, &args, &len, &err) < 0) {
        err_wrap(&err, "%s() was not run", r->method->name);
        call_refuse(&r->call, &err);
        return false;
    }
    call_set_args(&r->call, args, len);
    return true;
}

static void run(struct executor_job *job)
{
    struct request *r = CONTAINER_OF(job, struct request, job);
    crash_prepare_thread();
    if (!fetch(r))
        return;
    crash_doing(r->role->class->name, r->method->name, r->call.trace);
    call_run(&r->call, r->method, instance_self(r->role->instance));
    crash_doing(NULL, NULL, NULL);
}

// The result stays here. False: it cannot, and the body is that of an error.
static bool keep(struct request *r, struct buf *body)
{
    struct err err = ERR_INIT;
    int code = r->owner->objects ? objects_keep(r->owner->objects, r->owner, r->pin, body, &err)
                                 : err_set(&err, ERR_INVALID, "nothing is kept here");
    if (code == 0)
        return true;
    err_wrap(&err, "%s() ran, but its result cannot stay here", r->method->name);
    buf_reset(body);
    call_encode_error(body, err_name(code), err.msg);
    return false;
}

static void done(struct executor_job *job)
{
    struct request *r = CONTAINER_OF(job, struct request, job);
    struct request_owner *owner = r->owner;
    if (owner) {
        struct buf body = BUF_INIT(CALL_RESULT_MAX);
        bool ok = call_encode(&r->call, &body);
        if (ok && r->keep && !r->quiet)
            ok = keep(r, &body);
        owner->answer(owner, r, ok, &body);
        buf_done(&body);
        part(r);
    }
    destroy(r, owner);
}

static void on_deadline(void *ctx)
{
    struct request *r = ctx;
    char message[256];
    bool idle = withdraw(r);
    call_cancel(&r->call);
    snprintf(message, sizeof message, "%s(): the deadline of %" PRId64 " ms passed %s", r->method->name, r->timeout_ms,
             idle ? "before it could begin" : "while it ran; it goes on until it notices");
    answer_error(r, ERR_TIMEOUT, message);
    if (idle)
        destroy(r, NULL);
}

struct turn { // of the method that is to run
    const struct request_owner *owner;
    unsigned lane;
};

static bool holds_the_thread(void *ctx, const char *role, const char *method)
{
    const struct turn *t = ctx;
    struct err ignored = ERR_INIT;
    const struct role *other = roles_find(t->owner->roles, role, &ignored);
    return other && instance_lane(other->instance, method) == t->lane;
}

// A method that waits for this call may have the only thread that this call could run on.
static int check_cycle(const struct request_owner *owner, const struct role *role, const cadre_method *method,
                       const struct call_head *head, struct arena *a, struct err *err)
{
    struct turn turn = {owner, instance_lane(role->instance, method->name)};
    struct via_place here;
    if (!head->via || !owner->caller || !caller_where(owner->caller, &here.ns, &here.group, &here.rank) ||
        executor_lane_size(owner->executor, turn.lane) > 1)
        return 0;
    int at = via_find(head->via, &here, a, holds_the_thread, &turn);
    if (at < 0)
        return 0;
    struct buf way = BUF_INIT(512);
    via_print(head->via, at, a, &way);
    err_set(err, ERR_CONFLICT,
            "a deadlock: %s() would wait for the thread of rank %d of %s/%s, which waits for it (%s); a concurrency "
            "group gives it a thread of its own",
            method->name, here.rank, here.ns, here.group, buf_str(&way));
    buf_done(&way);
    return err->code;
}

int request_new(struct request_owner *owner, uint32_t id, uint64_t seq, struct blob *body, struct blob *tail,
                struct request **ret, struct err *err)
{
    struct record_call parts;
    struct call_head head;
    struct arena a;
    _Alignas(max_align_t) char memory[1024];
    const cadre_method *method = NULL;
    const struct role *role = NULL;
    char trace[TRACEPARENT_LEN + 1];
    arena_init_in(&a, memory, sizeof memory);
    int r = record_call_decode(body->data, body->len, &parts, err);
    if (r == 0)
        r = call_head_decode(parts.head, parts.head_len, &a, &head, err);
    if (r == 0)
        role = roles_find(owner->roles, head.role, err);
    if (role)
        method = module_method(role->class, head.method, err);
    if (method && check_cycle(owner, role, method, &head, &a, err) < 0)
        method = NULL;
    const char *via = method && head.via ? head.via->text : NULL; // in the body
    size_t via_len = via ? head.via->len : 0;
    if (method)
        traceparent_copy(trace, head.trace, head.trace ? strlen(head.trace) : 0);
    arena_done(&a);
    if (!method)
        return err->code;
    struct request *q = reuse_take(&owner->spare, sizeof *q);
    *q = (struct request){.id = id,
                          .seq = seq,
                          .owner = owner,
                          .role = role,
                          .job = {.run = run, .done = done, .lane = instance_lane(role->instance, method->name)},
                          .body = blob_ref(body),
                          .tail = tail ? blob_ref(tail) : NULL,
                          .method = method,
                          .keep = head.keep,
                          .pin = head.pin,
                          .timeout_ms = head.timeout_ms};
    list_init(&q->link);
    call_init(&q->call, tail ? tail->data : parts.args, tail ? tail->len : parts.args_len);
    q->call.nested = (struct nested){.caller = owner->caller,
                                     .role = role->name,
                                     .via = via,
                                     .via_len = via_len,
                                     .deadline = q->timeout_ms ? clock_mono_ms(&clock_system) + q->timeout_ms : 0};
    memcpy(q->call.trace, trace, sizeof trace);
    if (owner->memory && !head.keep) { // what is kept is not sent
        q->area = area_ref(memory_area(owner->memory));
        q->call.pool = memory_pool(owner->memory);
    }
    if (q->timeout_ms) {
        q->deadline = loop_timer_new(owner->loop, on_deadline, q);
        loop_timer_arm(q->deadline, q->timeout_ms);
    }
    *ret = q;
    return 0;
}

int request_borrow(struct request *r, struct err *err)
{
    return r->owner->objects ? borrowed_new(r->owner->objects, r->call.args, r->call.args_len, &r->borrowed, err)
                             : err_set(err, ERR_INVALID, "no references are understood here");
}

void request_start(struct request *r)
{
    struct err err = ERR_INIT;
    if (executor_submit(r->owner->executor, &r->job, &err) == 0) {
        r->submitted = true;
        return;
    }
    answer_error(r, err.code, err.msg);
    destroy(r, NULL);
}

void request_cancel(struct request *r, int code, const char *why)
{
    call_cancel(&r->call);
    if (!withdraw(r))
        return;
    answer_error(r, code, why);
    destroy(r, NULL);
}

void request_abandon(struct request *r)
{
    bool idle = withdraw(r);
    call_cancel(&r->call);
    list_remove(&r->link);
    part(r);
    if (idle)
        destroy(r, NULL);
}
