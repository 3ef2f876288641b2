// SPDX-License-Identifier: Apache-2.0
// The host of a program that runs its methods itself: the functions of cadre/host.h.
#include "sdk/c/include/cadre/host.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/thread.h"
#include "worker/host/code_right.h"
#include "worker/host/cow_args.h"
#include "worker/host/crash.h"
#include "worker/host/debug.h"
#include "worker/host/host.h"
#include "worker/host/host_call_nested.h"
#include "worker/host/host_call_view.h"
#include "worker/host/host_request.h"
#include "worker/host/rank_watch.h"
#include "worker/host/stacks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { USE_LOOK_US = 1000 };

static struct program { // one for each process
    struct host host;
    cadre_host_options options;
    cadre_class *classes;
    cadre_module_info info;
    pthread_t thread;
    struct loop_poll *wake;
    int exit_code;
    // Between the thread that calls cadre_host_start() and the loop's thread.
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool begun, created, ended;
    atomic_bool over; // the host ends, or this is a child of fork(): nothing uses the GPU of the host any more
    atomic_int users; // threads of the program that use the GPU of the host, beside calls
    struct rank_watch watch;
} program = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .watch = RANK_WATCH_INIT};

// The object exists already. This function publishes what it can do. On lane 0.
static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    const cadre_host_class *c = &program.options.classes[worker->class - program.classes];
    cadre_result r = CADRE_OK;
    (void)init, (void)init_len, (void)ret_self;
    for (size_t i = 0; i < c->n_rules && r == CADRE_OK; i++) {
        const cadre_host_rule *rule = &c->rules[i];
        if (rule->split || rule->collect)
            r = cadre_method_rule(worker, rule->method, rule->split, rule->collect);
        if (rule->idempotent && r == CADRE_OK)
            r = cadre_method_idempotent(worker, rule->method);
    }
    for (size_t i = 0; i < c->n_lanes && r == CADRE_OK; i++)
        r = cadre_concurrency_group(worker, c->lanes[i].name, c->lanes[i].limit, c->lanes[i].methods,
                                    c->lanes[i].n_methods);
    return r;
}

static int load(struct program *p, struct err *err)
{
    const cadre_host_options *o = &p->options;
    p->classes = xcalloc(o->n_classes, sizeof *p->classes);
    for (size_t i = 0; i < o->n_classes; i++)
        p->classes[i] = (cadre_class){.name = o->classes[i].name,
                                      .create = create,
                                      .methods = o->classes[i].methods,
                                      .n_methods = o->classes[i].n_methods};
    p->info = (cadre_module_info){CADRE_ABI, o->module, p->classes, o->n_classes};
    p->host.module = (struct module){o->module, &p->info};
    int r = module_check(o->module, &p->info, true, err);
    return r < 0 ? r : roles_read(&p->host.roles, &p->host.module, &p->host.worker, o->class_name, NULL, o->roles, err);
}

// Reads the environment of cadre-worker, except for what the program has read itself. Returns -1 if the program should
// go on.
static int read_options(struct program *p)
{
    struct err err = ERR_INIT;
    const cadre_host_options *o = &p->options;
    int code = host_options_read(&p->host.options, o->module, o->connect);
    if (code >= 0)
        return code;
    if (o->ticket)
        p->host.options.ticket = xstrdup(o->ticket);
    if (process_from_env(&p->host.worker, &err) == 0)
        return -1;
    fprintf(stderr, "cadre-worker: %s\n", err.msg);
    return EX_USAGE;
}

// The loop's thread

static void set(bool *what)
{
    pthread_mutex_lock(&program.mutex);
    *what = true;
    pthread_cond_broadcast(&program.changed);
    pthread_mutex_unlock(&program.mutex);
}

static void on_wake(void *ctx, int events)
{
    char some[64];
    (void)ctx, (void)events;
    while (read(program.options.wake_fd, some, sizeof some) == sizeof some)
        ;
    method_executor_wake(program.host.executor);
}

static void on_begin(void *ctx)
{
    struct program *p = ctx;
    struct err err = ERR_INIT;
    if (p->options.wake_fd >= 0)
        p->wake = loop_poll_read(p->host.loop, p->options.wake_fd, on_wake, p, &err);
    set(&p->begun);
}

static void on_created(void *ctx)
{
    struct program *p = ctx;
    p->created = true; // lane 0 sees this when method_executor_pull() returns
    method_executor_wake(p->host.executor);
}

// The threads that pull leave before the executor is freed.
static void on_end(void *ctx)
{
    struct program *p = ctx;
    loop_poll_free(p->wake);
    method_executor_stop(p->host.executor);
    pthread_mutex_lock(&p->mutex);
    while (!p->ended)
        pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

static void *run(void *ctx)
{
    struct program *p = ctx;
    p->exit_code = host_run(&p->host);
    return NULL;
}

// Forking

// Without this, the child would answer for its parent, and keep connections open that the parent has closed. The child
// has no part in the GPU: a thread of the parent may have held the mutex of its memory.
static void forget_in_child(void)
{
    struct sigaction now;
    atomic_store(&program.over, true);
    loop_close_polled();
    if (sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        signal(SIGTERM, SIG_DFL);
}

// The interface

static int begin(struct program *p)
{
    if (thread_start(&p->thread, run, p) != 0) {
        host_say(&p->host, "no thread can be started", "");
        return EX_OSERR;
    }
    pthread_mutex_lock(&p->mutex);
    while (!p->begun)
        pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    pthread_atfork(NULL, NULL, forget_in_child);
    return 0;
}

CADRE_EXPORT int cadre_host_start(const cadre_host_options *options)
{
    struct program *p = &program;
    struct err err = ERR_INIT;
    if (options->size != sizeof *options || p->options.size) {
        fprintf(stderr, "cadre-worker: cadre_host_start(): %s\n",
                p->options.size ? "it can be called only once"
                                : "the program was built for another version of libcadre.so");
        return EX_USAGE;
    }
    p->options = *options;
    int code = read_options(p);
    if (code >= 0)
        return code;
    crash_install(p->host.worker.rank);
    crash_show_by(options->stack_signal);
    debug_install(options->debug_fd);
    p->host.awaits = options->awaits;
    code_right_install(options->code);
    stacks_install(options->dump_signal, options->dump_fd);
    cow_args_install();
    if (load(p, &err) < 0) {
        host_say(&p->host, "", err.msg);
        return HOST_EXIT_MODULE;
    }
    p->host.pulled = true;
    p->watch.silence_ms = p->host.options.silence_ms;
    p->host.on_begin = on_begin;
    p->host.on_created = on_created;
    p->host.on_end = on_end;
    p->host.ctx = p;
    code = begin(p);
    while (code == 0 && !p->created) { // lane 0 runs the jobs for which on_created() waits
        cadre_host_call none;
        if (cadre_host_next(0, 1, &none) == CADRE_HOST_STOP)
            return cadre_host_end();
    }
    return code;
}

static struct host_request *request_of(cadre_call *c)
{
    return CONTAINER_OF(c, struct host_request, call);
}

static void hand_over(struct host_request *r, unsigned lane, cadre_host_call *ret)
{
    const struct role *role = r->what.role;
    *ret = (cadre_host_call){.call = &r->call,
                             .role = (uint32_t)(role - program.host.roles.at),
                             .method = (uint32_t)(r->what.method - role->class->methods)};
    ret->args = r->call.args;
    ret->args_len = r->call.args_len;
    if (r->call.device.args) {
        ret->values_len = r->call.device.args->len;
        ret->args_len -= ret->values_len;
    }
    struct cow_args *own = ret->own = host_request_own_args(r);
    if (own)
        ret->args = cow_args_data(own);
    ret->code = code_right_admits(r->code);
    r->call.method = r->what.method->name;
    if (lane == 0)
        crash_doing(role->class->name, r->what.method->name, r->call.trace);
}

CADRE_EXPORT int cadre_host_next(unsigned lane, int wait, cadre_host_call *ret)
{
    struct method_executor *e = program.host.executor;
    for (;;) {
        struct executor_job *job = NULL;
        if (lane == 0)
            crash_doing(NULL, NULL, NULL);
        enum executor_pulled pulled = method_executor_pull(e, lane, wait, &job);
        if (pulled != EXECUTOR_JOB)
            return pulled == EXECUTOR_NONE ? CADRE_HOST_NONE : CADRE_HOST_STOP;
        struct host_request *r = CONTAINER_OF(job, struct host_request, job);
        if (host_request_begin(r)) {
            hand_over(r, lane, ret);
            return CADRE_HOST_CALL;
        }
        method_executor_finish(e, job);
    }
}

CADRE_EXPORT int cadre_host_lane_fd(unsigned lane)
{
    return method_executor_lane_fd(program.host.executor, lane);
}

CADRE_EXPORT void *cadre_host_room(cadre_call *call, size_t len)
{
    return call_place_result(call, len);
}

CADRE_EXPORT int cadre_host_return(cadre_call *call, const void *body, size_t len)
{
    return call_return(call, body, len) == CADRE_OK ? 0 : -1;
}

CADRE_EXPORT const char *cadre_host_return_parts(cadre_call *call, const cadre_host_part *parts, size_t n, void *stream)
{
    struct err err = ERR_INIT;
    return call_return_parts(call, parts, n, stream, &err) < 0 ? buf_str(&call->message) : NULL;
}

CADRE_EXPORT const char *cadre_host_hold(cadre_call *call, void **ret_values, void **ret_held)
{
    struct err err = ERR_INIT;
    struct region *own;
    if (call_device_own_args(&call->device, &call->canceled, &own, &err) < 0) {
        (void)call_fail_device(call, &err);
        return buf_str(&call->message);
    }
    *ret_values = own->memory;
    *ret_held = own;
    return NULL;
}

// Returns false if the host ends, and frees its device. Otherwise the device stays until end_use(). There is no mutex,
// because a child of fork() may let go of values, too.
static bool begin_use(void)
{
    atomic_fetch_add(&program.users, 1);
    bool over = atomic_load(&program.over);
    if (over)
        atomic_fetch_sub(&program.users, 1);
    return !over;
}

static void end_use(void)
{
    atomic_fetch_sub(&program.users, 1);
}

// At the end, there is nothing left to free it with.
CADRE_EXPORT void cadre_host_let_go(void *held)
{
    if (!begin_use())
        return;
    region_unref(held);
    end_use();
}

CADRE_EXPORT void cadre_host_let_go_args(void *own)
{
    if (!atomic_load(&program.over))
        cow_args_let_go(own);
}

static void download(const cadre_call *call, void *to, const void *from, size_t len, void *stream, struct err *err)
{
    struct rank_device *d = program.host.device;
    struct copier *copier;
    if (rank_device_enter(d, err) < 0)
        return;
    if (rank_device_lend(d, true, &copier, err) == 0 && copier_join(copier, stream, err) == 0)
        (void)copier_download(copier, to, from, len, call ? DEVICE_NO_LIMIT : COPIER_LIMIT_MS,
                              call ? &call->canceled : NULL, err);
    rank_device_leave(d);
    rank_device_give(d, copier);
}

CADRE_EXPORT const char *cadre_host_download(const cadre_call *call, void *to, const void *from, size_t len,
                                             void *stream)
{
    static _Thread_local struct err err;
    err = ERR_INIT;
    if (!program.host.device || !begin_use())
        return "this process is not a worker, or has ended";
    download(call, to, from, len, stream, &err);
    end_use();
    return err.code ? err.msg : NULL;
}

CADRE_EXPORT void cadre_host_fail(cadre_call *call, const char *name, const char *message, const char *cause, int ran)
{
    (void)cadre_fail(call, "%s", message);
    host_request_fail(request_of(call), name, cause, ran);
}

CADRE_EXPORT void cadre_host_answered(cadre_call *call, cadre_result result)
{
    call->ran = true;
    call_answered(call, result);
}

CADRE_EXPORT void cadre_host_finish(cadre_call *call)
{
    struct host_request *r = request_of(call);
    host_request_end(r);
    method_executor_finish(program.host.executor, &r->job);
}

CADRE_EXPORT int cadre_host_canceled(const cadre_call *call)
{
    return cadre_call_canceled(call);
}

CADRE_EXPORT int64_t cadre_host_calls(cadre_call *call, char *via, size_t size)
{
    enum { VIA_MAX = 64 << 10 };
    _cleanup_(buf_done) struct buf text = BUF_INIT(VIA_MAX);
    struct err err = ERR_INIT;
    int64_t left = call->nested.deadline ? call->nested.deadline - clock_mono_ms(&clock_system) : NESTED_WAIT_MS;
    if (!call->nested.client || call_via(call, &text, &err) < 0 || text.len >= size)
        return -1;
    snprintf(via, size, "%s", buf_str(&text));
    return MAX(left, INT64_C(0));
}

CADRE_EXPORT int64_t cadre_host_fetch(int64_t offset, void *out, size_t size, int timeout_ms)
{
    const struct host *h = &program.host;
    if (!h->archive || size < ARCHIVE_PIECE_MAX)
        return -1;
    int64_t got = archive_fetch_wait(h->archive, h->awaits, offset, out, timeout_ms);
    return got < 0 ? -1 : got;
}

CADRE_EXPORT const char *cadre_host_meet(const int *ranks, int n, int64_t limit_ms)
{
    static struct err err;
    const struct rank_watch_members who = {ranks, n};
    int r = rank_watch_meet(&program.watch, program.host.rendezvous, &who, limit_ms, &err);
    return r == ERR_CANCELED || r == ERR_GONE ? "" : r < 0 ? err.msg : NULL;
}

CADRE_EXPORT const char *cadre_host_watch(void)
{
    static struct err err;
    return rank_watch_wait(&program.watch, &err) < 0 ? err.msg : NULL;
}

CADRE_EXPORT int cadre_host_end(void)
{
    struct program *p = &program;
    atomic_store(&p->over, true);
    while (atomic_load(&p->users)) // all calls are finished, and a copy without a call ends within COPIER_LIMIT_MS
        usleep(USE_LOOK_US);
    rank_watch_end(&p->watch);
    set(&p->ended);
    pthread_join(p->thread, NULL);
    roles_done(&p->host.roles);
    free(p->host.options.ticket);
    free(p->classes);
    return p->exit_code;
}
