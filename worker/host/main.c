// SPDX-License-Identifier: Apache-2.0
// cadre-worker: loads the module, makes the object, serves it until it is told to stop.
#include "common/base/loop.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "worker/host/crash.h"
#include "worker/host/description.h"
#include "worker/host/options.h"
#include "worker/host/session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { EXIT_MODULE = 65, EXIT_CONSTRUCTOR = 66 };

struct host {
    struct options options;
    struct cadre_worker worker;
    struct module module;
    const cadre_class *class;
    struct loop *loop;
    struct executor *executor;
    struct instance *instance;
    struct ws_tls *tls;
    struct session *sessions[OPTIONS_CONNECT_MAX];
    size_t n_sessions;
    struct loop_signal *signals[2];
    bool created, stopping;
    int exit_code;
};

static void say(const struct host *h, const char *what, const char *detail)
{
    fprintf(stderr, "cadre-worker: rank %d: %s%s\n", h->worker.rank, what, detail);
}

// Lets the sessions end, then the object, then the loop.
static void stop(struct host *h, int exit_code)
{
    if (h->stopping)
        return;
    h->stopping = true;
    h->exit_code = exit_code;
    if (!h->n_sessions)
        instance_destroy(h->instance);
    for (size_t i = 0, n = h->n_sessions; i < n; i++)
        session_stop(h->sessions[i]);
}

// Serving

static void on_ready(void *ctx)
{
    say(ctx, "ready for calls", "");
}

static void on_lost(void *ctx, const struct err *err, int64_t retry_ms)
{
    char line[sizeof err->msg + 64];
    snprintf(line, sizeof line, "%s; dialing again in %lld ms", err->msg, (long long)retry_ms);
    say(ctx, "", line);
}

static void on_stopped(void *ctx)
{
    struct host *h = ctx;
    if (--h->n_sessions == 0)
        instance_destroy(h->instance);
}

static int connect_session(struct host *h, const struct options_address *to, uint64_t seed, struct err *err)
{
    struct session_config config = {
        .address = to->address,
        .path = to->path,
        .tls = to->tls ? h->tls : NULL,
        .group = h->options.group,
        .ticket = h->options.ticket,
        .attempt = h->options.attempt,
        .worker = &h->worker,
        .module = &h->module,
        .instance = h->instance,
        .executor = h->executor,
        .seed = seed,
        .on_ready = on_ready,
        .on_lost = on_lost,
        .on_stopped = on_stopped,
        .ctx = h,
    };
    struct session *s = session_new(h->loop, &config, err);
    if (!s)
        return err->code;
    h->sessions[h->n_sessions++] = s;
    return 0;
}

static void serve(struct host *h)
{
    struct rand rand;
    struct err err = ERR_INIT;
    rand_seed_system(&rand);
    for (size_t i = 0; i < h->options.n_connect; i++)
        if (connect_session(h, &h->options.connect[i], rand_u64(&rand), &err) < 0) {
            say(h, "", err.msg);
            stop(h, EX_USAGE);
            return;
        }
}

static void on_created(void *ctx, const struct err *err)
{
    struct host *h = ctx;
    if (err->code) {
        say(h, "", err->msg);
        h->exit_code = EXIT_CONSTRUCTOR;
        loop_stop(h->loop);
        return;
    }
    h->created = true;
    serve(h);
}

static void on_destroyed(void *ctx)
{
    struct host *h = ctx;
    loop_stop(h->loop);
}

static void on_signal(void *ctx, int signo)
{
    struct host *h = ctx;
    (void)signo;
    if (!h->created) {
        // There is nothing to destroy yet, and the constructor may wait for peers that are gone: no use to wait for it.
        say(h, "told to stop while the constructor runs", "");
        _exit(0);
    }
    stop(h, 0);
}

// Starting

static int load(struct host *h, struct err *err)
{
    int r = module_load(h->options.module, &h->module, err);
    if (r < 0)
        return r;
    h->class = module_class(&h->module, h->options.class, err);
    return h->class ? 0 : err->code;
}

static void describe(const struct host *h)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    description_write(&w, &h->module, h->class);
    writer_object_end(&w);
    puts(buf_str(&w.buf));
    writer_done(&w);
}

static int make_object(struct host *h, struct err *err)
{
    struct instance_config config = {
        .executor = h->executor,
        .worker = &h->worker,
        .class = h->class,
        .init = h->options.init,
        .on_created = on_created,
        .on_destroyed = on_destroyed,
        .ctx = h,
    };
    h->instance = instance_new(&config, err);
    return h->instance ? 0 : err->code;
}

static int prepare_tls(struct host *h, struct err *err)
{
    bool wanted = false;
    for (size_t i = 0; i < h->options.n_connect; i++)
        wanted |= h->options.connect[i].tls;
    h->tls = wanted ? ws_tls_new(h->options.ca_pem, err) : NULL;
    return wanted && !h->tls ? err_wrap(err, "CADRE_CA") : 0;
}

static void take_down(struct host *h)
{
    for (size_t i = 0; i < OPTIONS_CONNECT_MAX; i++)
        session_free(h->sessions[i]);
    executor_free(h->executor);
    loop_signal_free(h->signals[0]);
    loop_signal_free(h->signals[1]);
    ws_tls_unref(h->tls);
    loop_free(h->loop);
}

static int run(struct host *h)
{
    struct err err = ERR_INIT;
    h->loop = loop_new();
    // Room for what each session lets wait, and for the destructor.
    h->executor = executor_new(h->loop, OPTIONS_CONNECT_MAX * SESSION_CALLS_MAX + 1);
    h->signals[0] = loop_signal_new(h->loop, SIGTERM, on_signal, h);
    h->signals[1] = loop_signal_new(h->loop, SIGINT, on_signal, h);
    if (prepare_tls(h, &err) < 0) {
        say(h, "", err.msg);
        h->exit_code = EX_USAGE;
    } else if (make_object(h, &err) < 0) {
        say(h, "", err.msg);
        h->exit_code = EXIT_CONSTRUCTOR;
    } else {
        loop_run(h->loop);
    }
    take_down(h);
    return h->exit_code;
}

int main(int argc, char **argv)
{
    struct host h = {.n_sessions = 0};
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
    }
    free(h.options.ticket);
    return code;
}
