// SPDX-License-Identifier: Apache-2.0
// cadre-worker: loads the module, makes the object or those of all roles, serves until it is told to stop.
#include "common/base/loop.h"
#include "common/base/mem.h"
#include "worker/host/caller.h"
#include "worker/host/crash.h"
#include "worker/host/description.h"
#include "worker/host/proxies.h"
#include "worker/host/roles.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { EXIT_MODULE = 65, EXIT_CONSTRUCTOR = 66 };
enum { KEPT_BLOCK = 32 << 20, KEPT_BYTES = 64 << 20 };

struct host {
    struct options options;
    struct cadre_worker worker;
    struct module module;
    struct roles roles;
    struct loop *loop;
    struct executor *executor;
    struct caller *caller;
    struct objects *objects;
    struct proxies *proxies; // NULL while the constructor runs
    struct loop_signal *signals[2];
    bool stopping;
    int exit_code;
};

static void say(const struct host *h, const char *what, const char *detail)
{
    fprintf(stderr, "cadre-worker: rank %d: %s%s\n", h->worker.rank, what, detail);
}

// Serving

static void on_ready(void *ctx)
{
    say(ctx, "ready for calls", "");
}

static void on_trouble(void *ctx, const char *what)
{
    say(ctx, "", what);
}

static void on_stopped(void *ctx)
{
    struct host *h = ctx;
    roles_destroy(&h->roles);
}

static void serve(struct host *h)
{
    struct err err = ERR_INIT;
    const struct proxies_config config = {
        .options = &h->options,
        .session = {.worker = &h->worker,
                    .module = &h->module,
                    .roles = &h->roles,
                    .caller = h->caller,
                    .executor = h->executor,
                    .objects = h->objects,
                    .bytes_max = h->options.call_bytes},
        .on_ready = on_ready,
        .on_trouble = on_trouble,
        .on_stopped = on_stopped,
        .ctx = h,
    };
    h->proxies = proxies_new(h->loop, &config, &err);
    if (h->proxies)
        return;
    say(h, "", err.msg);
    h->stopping = true;
    h->exit_code = EX_USAGE;
    roles_destroy(&h->roles);
}

static void on_created(void *ctx, const struct err *err)
{
    struct host *h = ctx;
    if (err->code) {
        say(h, "", err->msg);
        h->exit_code = EXIT_CONSTRUCTOR;
        executor_leave(h->executor);
        return;
    }
    serve(h);
}

static void on_destroyed(void *ctx)
{
    struct host *h = ctx;
    executor_leave(h->executor);
}

static void on_signal(void *ctx, int signo)
{
    struct host *h = ctx;
    (void)signo;
    if (h->stopping)
        return;
    if (!h->proxies) {
        // There is nothing to destroy yet, and the constructor may wait for peers that are gone: no use to wait for it.
        say(h, "told to stop while the constructor runs", "");
        _exit(0);
    }
    // Lets the sessions end, then the object, then the loop.
    h->stopping = true;
    proxies_stop(h->proxies);
}

// Starting

static int load(struct host *h, struct err *err)
{
    int r = module_load(h->options.module, &h->module, err);
    if (r < 0)
        return r;
    return roles_read(&h->roles, &h->module, &h->worker, h->options.class, h->options.init, h->options.roles, err);
}

static void describe(const struct host *h)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    description_write(&w, &h->module, &h->roles);
    writer_object_end(&w);
    puts(buf_str(&w.buf));
    writer_done(&w);
}

static void take_down(struct host *h)
{
    proxies_free(h->proxies);
    objects_free(h->objects);
    executor_free(h->executor);
    caller_free(h->caller);
    loop_signal_free(h->signals[0]);
    loop_signal_free(h->signals[1]);
    loop_free(h->loop);
}

// Proxies that were named are those of a run on this machine.
static struct objects *make_objects(const struct host *h)
{
    const struct options *o = &h->options;
    const struct objects_config config = {
        .loop = h->loop,
        .group = o->group,
        .attempt = (uint32_t)o->attempt,
        .rank = (uint32_t)h->worker.rank,
        .store_bytes = o->store_bytes,
        .call_bytes = o->reference_bytes,
        .local = o->n_connect > 0,
        .port = o->objects_port,
    };
    struct err err = ERR_INIT;
    struct objects *objects = objects_new(&config, &err);
    if (err.code)
        say(h, "", err.msg);
    return objects;
}

static int run(struct host *h)
{
    h->loop = loop_new();
    // Room for what each session lets wait, and for the destructor.
    h->executor = executor_new(h->loop, OPTIONS_CONNECT_MAX * SESSION_CALLS_MAX + 1);
    h->caller = caller_new(&h->options);
    h->objects = make_objects(h);
    h->signals[0] = loop_signal_new(h->loop, SIGTERM, on_signal, h);
    h->signals[1] = loop_signal_new(h->loop, SIGINT, on_signal, h);
    const struct roles_config config = {h->executor, on_created, on_destroyed, h};
    roles_create(&h->roles, &config);
    if (h->exit_code == 0)
        executor_turn(h->executor);
    take_down(h);
    return h->exit_code;
}

// What calls free is kept for the next ones: with its defaults malloc() gives the memory of every thousand small calls,
// and of each long one, back to the kernel, and takes it again page by page.
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_TOP_PAD, KEPT_BLOCK / 32);
}

int main(int argc, char **argv)
{
    struct host h = {.exit_code = 0};
    keep_memory();
    struct err err = ERR_INIT;
    setvbuf(stdout, NULL, _IOLBF, 0); // it is a pipe to the agent: people want to see lines when they are written
    signal(SIGPIPE, SIG_IGN);
    int code = options_parse(argc, argv, &h.options);
    if (code < 0 && process_from_env(&h.worker, &err) < 0) {
        fprintf(stderr, "cadre-worker: %s\n", err.msg);
        code = EX_USAGE;
    }
    if (code < 0) {
        crash_install(h.worker.rank);
        if (load(&h, &err) < 0) {
            say(&h, "", err.msg);
            code = EXIT_MODULE;
        } else if (h.options.describe) {
            describe(&h);
            code = 0;
        } else {
            code = run(&h);
        }
        roles_done(&h.roles);
    }
    free(h.options.ticket);
    return code;
}
