// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host.h"

#include "worker/host/exit_limit.h"
#include "worker/host/progress.h"
#include "worker/host/rendezvous.h"

#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

void host_say(const struct host *h, const char *what, const char *detail)
{
    fprintf(stderr, "cadre-worker: rank %d: %s%s\n", h->worker.rank, what, detail);
}

// Serving

static void on_ready(void *ctx)
{
    host_say(ctx, "ready for calls", "");
}

static void on_trouble(void *ctx, const char *what)
{
    host_say(ctx, "", what);
}

static void on_stopped(void *ctx)
{
    struct host *h = ctx;
    roles_destroy(&h->roles);
}

// Ends the sessions first, then the objects, then the loop.
static void stop(struct host *h)
{
    if (h->stopping)
        return;
    h->stopping = true;
    proxies_stop(h->proxies);
}

static void on_over(void *ctx, const char *why)
{
    host_say(ctx, "", why);
    stop(ctx);
}

static void on_device_lost(void *ctx, const char *why)
{
    struct host *h = ctx;
    h->exit_code = HOST_EXIT_DEVICE;
    host_say(h, why, ": only a new process can use the GPU, so this one ends");
    exit_limit_begin(h->exit_code);
    stop(h);
}

static void serve(struct host *h)
{
    struct err err = ERR_INIT;
    const struct proxies_config config = {
        .options = &h->options,
        .session = {.worker = &h->worker,
                    .module = &h->module,
                    .awaits = h->awaits,
                    .roles = &h->roles,
                    .client = h->client,
                    .executor = h->executor,
                    .objects = h->objects,
                    .rendezvous = h->rendezvous,
                    .archive = h->archive,
                    .own = h->pulled,
                    .bytes_max = h->options.call_bytes},
        .on_ready = on_ready,
        .on_trouble = on_trouble,
        .on_over = on_over,
        .on_stopped = on_stopped,
        .ctx = h,
    };
    h->proxies = proxies_new(h->loop, &config, &err);
    if (h->proxies)
        return;
    host_say(h, "", err.msg);
    h->stopping = true;
    h->exit_code = EX_USAGE;
    roles_destroy(&h->roles);
}

static void publish_meshes(struct host *h)
{
    struct mesh meshes[MESHES_MAX];
    rendezvous_meshes(h->rendezvous, meshes, roles_meshes(&h->roles, meshes), true);
}

static void on_created(void *ctx, const struct err *err)
{
    struct host *h = ctx;
    if (err->code) {
        host_say(h, "", err->msg);
        h->exit_code = HOST_EXIT_CONSTRUCTOR;
        if (rank_device_has_gpu(h->device))
            exit_limit_begin(h->exit_code);
        method_executor_leave(h->executor);
        return;
    }
    publish_meshes(h);
    if (h->on_created)
        h->on_created(h->ctx);
    serve(h);
}

static void on_destroyed(void *ctx)
{
    struct host *h = ctx;
    method_executor_leave(h->executor);
}

static void on_signal(void *ctx, int signo)
{
    struct host *h = ctx;
    (void)signo;
    if (h->stopping)
        return;
    if (!h->proxies) {
        // Nothing exists that must be destroyed. The constructor may wait for peers that are gone, so this does not
        // wait for it.
        host_say(h, "told to stop while the constructor runs", "");
        _exit(0);
    }
    stop(h);
}

// Starting

static void ask_place(void *ctx, const struct rendezvous_question *q)
{
    const struct host *h = ctx;
    if (h->proxies)
        proxies_ask_place(h->proxies, q);
}

static void tell_progress(void *ctx, const char *body, size_t len)
{
    const struct host *h = ctx;
    if (h->proxies)
        proxies_tell_progress(h->proxies, body, len);
}

static void ask_archive(void *ctx, const struct archive_piece *p, unsigned nth)
{
    const struct host *h = ctx;
    if (h->proxies)
        proxies_ask_archive(h->proxies, p, nth);
}

static void take_down(struct host *h)
{
    rank_device_close(h->device);
    proxies_free(h->proxies);
    archive_fetch_free(h->archive);
    objects_free(h->objects);
    rendezvous_free(h->rendezvous);
    progress_free(h->progress);
    method_executor_free(h->executor);
    nested_client_free(h->client);
    rank_device_free(h->device);
    loop_signal_free(h->signals[0]);
    loop_signal_free(h->signals[1]);
    loop_free(h->loop);
}

// Proxies that are named belong to a run on this machine.
static struct objects *make_objects(const struct host *h)
{
    const struct host_options *o = &h->options;
    const struct objects_config config = {
        .loop = h->loop,
        .group = o->group,
        .attempt = (uint32_t)o->attempt,
        .rank = (uint32_t)h->worker.rank,
        .store_bytes = o->store_bytes,
        .call_bytes = o->reference_bytes,
        .local = o->n_connect > 0,
        .port = o->objects_port,
        .rendezvous = h->rendezvous,
        .progress = h->progress,
        .device = h->device,
    };
    struct err err = ERR_INIT;
    struct objects *objects = objects_new(&config, &err);
    if (err.code)
        host_say(h, "", err.msg);
    return objects;
}

int host_run(struct host *h)
{
    // There is room for all waiting calls of each session, and for the destructor.
    size_t max = HOST_OPTIONS_CONNECT_MAX * SESSION_CALLS_MAX + 1;
    h->loop = loop_new();
    h->executor = method_executor_new(h->loop, max, h->pulled);
    if (h->on_begin)
        h->on_begin(h->ctx);
    h->client = nested_client_new(&h->options);
    h->rendezvous = rendezvous_new(&(struct rendezvous_config){.loop = h->loop,
                                                               .attempt = (uint32_t)h->options.attempt,
                                                               .rank = h->worker.rank,
                                                               .world = h->worker.world_size,
                                                               .limit_ms = h->options.collective_ms,
                                                               .ask = ask_place,
                                                               .ctx = h});
    h->progress = progress_new(h->loop, tell_progress, h);
    h->device = rank_device_new(h->loop, h->worker.device, on_device_lost, h);
    h->archive = h->awaits ? archive_fetch_new(h->loop, ask_archive, h) : NULL;
    h->objects = make_objects(h);
    h->signals[0] = loop_signal_new(h->loop, SIGTERM, on_signal, h);
    if (!h->pulled) // in a program, SIGINT belongs to the program
        h->signals[1] = loop_signal_new(h->loop, SIGINT, on_signal, h);
    const struct roles_config config = {h->executor, on_created, on_destroyed, h};
    roles_create(&h->roles, &config);
    if (h->exit_code == 0)
        method_executor_turn(h->executor);
    if (h->on_end)
        h->on_end(h->ctx);
    take_down(h);
    return h->exit_code;
}
