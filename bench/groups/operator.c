// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/operator.h"

#include "bench/lib/metrics.h"
#include "common/base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLE_MS = 10, READY_S = 60, STOP_S = 20, ASK_MS = 900 };

static _Noreturn void die(const struct operator* o, const char *why)
{
    fprintf(stderr, "bench-groups: %s: %s; its log: %s\n", o->setup.program, why, o->setup.log);
    exit(1);
}

// --- asking it

struct question {
    bool answered;
    char *text; // NULL: refused
};

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct question *q = ctx;
    (void)err;
    q->answered = true;
    q->text = response ? xstrdup(response->body) : NULL;
}

static char *ask(struct operator* o, const char *path)
{
    struct question q = {0};
    kube_get_path(o->client, path, ASK_MS, on_answer, &q);
    while (!q.answered)
        loop_run_once(o->loop, 100);
    return q.text;
}

struct operator_counters operator_counters(struct operator* o)
{
    _cleanup_(free_p) char *text = ask(o, "/metrics");
    if (!text)
        die(o, "does not show its metrics");
    const char *requests = "rest_client_requests_total";
    return (struct operator_counters){
        .posts = metrics_sum(text, requests, "method=\"POST\""),
        .patches = metrics_sum(text, requests, "method=\"PATCH\""),
        .deletes = metrics_sum(text, requests, "method=\"DELETE\""),
        .errors = metrics_sum(text, requests, "code=\"4") + metrics_sum(text, requests, "code=\"5") +
                  metrics_sum(text, requests, "code=\"<"),
        .reconciles = metrics_sum(text, "controller_runtime_reconcile_total", "controller=\"workergroup\""),
    };
}

// --- its life

static void on_sample(void *ctx)
{
    struct operator* o = ctx;
    struct proc_memory now = proc_memory(o->pid);
    o->peak.rss = MAX(o->peak.rss, now.peak); // the kernel saw every moment of it
    o->peak.anon = MAX(o->peak.anon, now.anon);
    loop_timer_arm(o->sampler, SAMPLE_MS);
}

static _Noreturn void child(const struct operator_setup *p)
{
    char address[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a leftover would answer for the next one
    snprintf(address, sizeof address, "127.0.0.1:%d", p->port);
    int log = open(p->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    if (!p->kubeconfig)
        execl(p->program, p->program, (char *)NULL);
    execl(p->program, p->program, "--kubeconfig", p->kubeconfig, "--leader-elect-namespace", p->ns, "--http-address",
          address, "--log-level", "warn", (char *)NULL);
    _exit(127);
}

double operator_start(struct operator* o)
{
    int64_t began = proc_now_us();
    o->peak = (struct proc_memory){0};
    o->pid = fork();
    if (o->pid == 0)
        child(&o->setup);
    if (o->pid < 0)
        die(o, "cannot be started");
    for (;;) {
        _cleanup_(free_p) char *text = ask(o, "/readyz");
        double took = (double)(proc_now_us() - began) / 1e6;
        if (waitpid(o->pid, NULL, WNOHANG) == o->pid || took > READY_S)
            die(o, "does not become ready");
        if (text) {
            loop_timer_arm(o->sampler, 0);
            return took;
        }
        usleep(1000);
    }
}

void operator_stop(struct operator* o)
{
    loop_timer_disarm(o->sampler);
    if (o->pid <= 0)
        return;
    kill(o->pid, SIGTERM);
    for (int64_t end = proc_now_us() + (int64_t)STOP_S * 1000000; waitpid(o->pid, NULL, WNOHANG) == 0;) {
        usleep(10000);
        if (proc_now_us() > end)
            kill(o->pid, SIGKILL);
    }
    o->pid = 0;
}

void operator_open(struct operator* o, struct loop *loop, const struct operator_setup *setup)
{
    struct err err = ERR_INIT;
    *o = (struct operator){.loop = loop, .setup = *setup};
    o->config.server = arena_printf(&o->config.arena, "http://127.0.0.1:%d", setup->port);
    o->config.source = "its address";
    o->config.ns = "default";
    if (kube_client_new(loop, &o->config, NULL, &o->client, &err) < 0)
        die(o, err.msg);
    o->sampler = loop_timer_new(loop, on_sample, o);
}

void operator_close(struct operator* o)
{
    operator_stop(o);
    loop_timer_free(o->sampler);
    kube_client_free(o->client);
    kube_config_done(&o->config);
}
