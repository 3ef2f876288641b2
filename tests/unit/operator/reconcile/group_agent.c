// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/group_agent.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/gpu.h"
#include "tests/unit/operator/reconcile/gang_world.h"
#include "worker/agent/message.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void follow(struct sim_agent *g, struct sim_world *w);

struct sim_agent *sim_agent_new(const char *pod_uid, const char *pod_name, int rank)
{
    struct sim_agent *g = xcalloc(1, sizeof *g);
    g->pod_uid = pod_uid;
    g->pod_name = pod_name;
    g->rank = rank;
    for (int i = 0; i < SIM_LINES; i++) {
        g->lines[i] = xcalloc(1, sizeof *g->lines[i]);
        g->lines[i]->agent = g;
    }
    return g;
}

void sim_agent_cut(struct sim_agent *g, int line)
{
    struct sim_line *l = g->lines[line];
    if (l->peer)
        agents_leave(l->registry, TAKE_PTR(l->peer));
    for (size_t i = 0; i < l->n_orders; i++)
        free(l->orders[i].body);
    free(TAKE_PTR(l->orders));
    l->n_orders = 0;
}

void sim_agent_promote(struct sim_agent *g)
{
    struct sim_line *before = g->lines[0];
    g->lines[0] = g->lines[1];
    g->lines[1] = before;
}

void sim_agent_free(struct sim_agent *g)
{
    if (!g)
        return;
    for (int i = 0; i < SIM_LINES; i++) {
        sim_agent_cut(g, i);
        free(g->lines[i]);
    }
    supervisor_free(g->supervisor);
    free(g);
}

// Reports of the agent.

static void say(struct sim_line *l, enum record_type type, const struct json_writer *w)
{
    struct err err = ERR_INIT;
    struct record r = {.h = {.type = (uint8_t)type, .rank = RECORD_GROUP}, .body = buf_str(&w->buf), .len = w->buf.len};
    if (l->peer && agents_record(l->registry, l->peer, &r, &err) < 0)
        fail_msg("%s", err.msg);
}

static void report(struct sim_agent *g, const struct supervisor_action *a)
{
    struct agent_report r = {.type = a->report,
                             .group = supervisor_group(g->supervisor),
                             .attempt = a->attempt,
                             .rank = a->rank,
                             .code = a->code,
                             .signal = a->signal,
                             .message = a->message,
                             .last = ""};
    struct json_writer b;
    if (r.type == SUPERVISOR_REPORT_STARTED)
        r.supervisor = g->supervisor;
    enum record_type type = message_report(&r, &b);
    for (int i = 0; i < SIM_LINES; i++)
        say(g->lines[i], type, &b);
    writer_done(&b);
}

static void beat(struct sim_line *l)
{
    struct err err = ERR_INIT;
    struct record r = {.h = {.type = RECORD_HEARTBEAT, .rank = RECORD_GROUP}, .body = ""};
    if (agents_record(l->registry, l->peer, &r, &err) < 0)
        fail_msg("%s", err.msg);
}

static void write_processes(const struct supervisor *s, struct json_writer *b)
{
    static const char *const names[] = {"Starting", "Running", "Exited", "Exited"};
    writer_list(b, "processes");
    for (size_t i = 0; i < supervisor_process_count(s); i++) {
        const struct supervisor_process *p = supervisor_process_at(s, i);
        writer_object(b, NULL);
        writer_i64(b, "rank", p->spec->rank);
        writer_i64(b, "attempt", p->command->attempt);
        writer_str(b, "state", names[p->state]);
        if (p->state >= SUPERVISOR_PROCESS_EXITED)
            writer_i64(b, "exitCode", p->code);
        writer_object_end(b);
    }
    writer_list_end(b);
}

static void write_hello(const struct sim_agent *g, struct json_writer *b)
{
    writer_object(b, NULL);
    writer_str(b, "role", "agent");
    writer_i64(b, "version", 1);
    writer_list(b, "groups");
    if (g->supervisor) {
        writer_object(b, NULL);
        writer_str(b, "group", supervisor_group(g->supervisor));
        writer_i64(b, "attempt", supervisor_attempt(g->supervisor));
        writer_str(b, "state", supervisor_state_name(supervisor_state(g->supervisor)));
        write_processes(g->supervisor, b);
        writer_object_end(b);
    }
    writer_list_end(b);
    writer_object_end(b);
}

static int on_order(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    struct sim_line *l = owner;
    (void)len, (void)err;
    l->orders = xrealloc(l->orders, l->n_orders + 1, sizeof *l->orders);
    l->orders[l->n_orders++] = (struct sim_order){type, xstrdup(body)};
    return 0;
}

static void dial(struct sim_agent *g, struct sim_world *w, int line)
{
    struct sim_line *l = g->lines[line];
    const struct agent_identity id = {.ns = "ml",
                                      .group = "sim",
                                      .pod = g->pod_name,
                                      .pod_uid = g->pod_uid,
                                      .node = "a node",
                                      .group_uid = w->gang->meta.uid};
    struct json_writer b = WRITER_INIT;
    struct err err = ERR_INIT;
    l->registry = w->registries[line];
    write_hello(g, &b);
    if (agents_join(l->registry, &id, buf_str(&b.buf), b.buf.len, on_order, l, &l->peer, &err) < 0)
        fail_msg("%s", err.msg);
    writer_done(&b);
}

// Commands to the agent.

static void obey(struct sim_agent *g, struct sim_world *w, struct sim_line *l, const struct sim_order *o)
{
    struct command *c = NULL;
    struct err err = ERR_INIT;
    struct json_writer b;
    assert_true(command_is(o->type));
    if (command_parse(o->type, o->body, strlen(o->body), &c, &err) < 0)
        fail_msg("%s: %s", err.msg, o->body);
    if (!g->supervisor)
        g->supervisor = supervisor_new(c->group);
    assert_string_equal(supervisor_group(g->supervisor), c->group);
    supervisor_command(g->supervisor, w->now_ms, c, &err);
    follow(g, w);
    if (err.code == 0 && c->type == RECORD_STOP && c->end && !g->ending) {
        g->ending = true;
        supervisor_shutdown(g->supervisor, w->now_ms, c->grace_ms);
        follow(g, w);
    }
    if (err.code < 0) {
        message_refused(o->type, c, &err, &b);
        say(l, RECORD_REFUSED, &b);
        writer_done(&b);
    }
    command_unref(c);
}

static void take_orders(struct sim_agent *g, struct sim_world *w, struct sim_line *l)
{
    struct sim_order *orders = TAKE_PTR(l->orders);
    size_t n = l->n_orders;
    l->n_orders = 0;
    for (size_t i = 0; i < n; i++) {
        obey(g, w, l, &orders[i]);
        free(orders[i].body);
    }
    free(orders);
}

// Processes.

static int version_of(const struct command *c)
{
    int64_t v = -1;
    for (size_t i = 0; i < c->env.n_vars; i++)
        if (str_eq(c->env.vars[i].name, "VERSION"))
            str_to_i64(c->env.vars[i].value, &v);
    return (int)v;
}

static void launch(struct sim_agent *g, struct sim_world *w, const struct supervisor_process *p)
{
    assert_int_equal(g->process, SIM_PROCESS_NONE);
    assert_int_equal(p->spec->rank, g->rank);
    g->attempt = p->command->attempt;
    g->process = SIM_PROCESS_STARTING;
    g->worker_version = version_of(p->command);
    sim_launched(w, g);
}

void sim_agent_exit(struct sim_agent *g, struct sim_world *w, int exit_code, int signal)
{
    if (g->process == SIM_PROCESS_NONE)
        return;
    g->process = SIM_PROCESS_NONE;
    g->stop_at_ms = 0;
    if (g->member)
        w->peers_changed = true;
    g->member = 0;
    supervisor_exited(g->supervisor, g->rank, exit_code, signal);
    follow(g, w);
    supervisor_gone(g->supervisor, w->now_ms, g->rank);
    follow(g, w);
}

static void follow(struct sim_agent *g, struct sim_world *w)
{
    struct supervisor_action a;
    while (supervisor_next(g->supervisor, &a)) {
        switch (a.type) {
        case SUPERVISOR_RESOLVE:
            g->resolving = true;
            break;
        case SUPERVISOR_TRY_PORT:
            supervisor_port_tried(g->supervisor, NULL);
            break;
        case SUPERVISOR_LAUNCH:
            launch(g, w, a.process);
            break;
        case SUPERVISOR_TERMINATE:
            if (!g->stop_at_ms)
                g->stop_at_ms = w->now_ms + (w->calm ? 10 : rand_range(&w->rand, 0, 5000));
            break;
        case SUPERVISOR_KILL: // no client calls here
            break;
        case SUPERVISOR_REPORT:
            report(g, &a);
            break;
        }
    }
}

static void look_up(struct sim_agent *g, struct sim_world *w)
{
    const char *found = sim_address(w, 0), *wanted = supervisor_master_ip(g->supervisor);
    g->resolving = false;
    supervisor_resolved(g->supervisor, w->now_ms, str_eq(found, wanted), found ? found : "no such name");
    follow(g, w);
}

static void run(struct sim_agent *g, struct sim_world *w)
{
    if (g->stop_at_ms && w->now_ms >= g->stop_at_ms) {
        sim_agent_exit(g, w, 143, 15);
    } else if (g->process == SIM_PROCESS_STARTING) {
        g->process = SIM_PROCESS_RUNNING;
        supervisor_started(g->supervisor, g->rank);
        follow(g, w);
    } else if (g->process == SIM_PROCESS_RUNNING && w->spec.module && g->member != g->attempt) {
        g->member = g->attempt;
        w->peers_changed = true;
    } else if (g->process == SIM_PROCESS_RUNNING && sim_all_run(w, g->attempt)) {
        if (w->mode == SIM_SUCCEEDS && sim_chance(w, 40))
            sim_agent_exit(g, w, 0, 0);
        else if (w->mode == SIM_FAILS && sim_chance(w, 30))
            sim_agent_exit(g, w, 1, 0);
    }
}

void sim_agent_live(struct sim_agent *g, struct sim_world *w)
{
    for (int i = 0; i < SIM_LINES; i++) {
        if (w->deaf[i] || g->hung || g->away)
            sim_agent_cut(g, i);
        else if (!g->lines[i]->peer && w->registries[i] && (w->calm || sim_chance(w, 60)))
            dial(g, w, i);
        else
            take_orders(g, w, g->lines[i]);
        if (g->lines[i]->peer && !g->mute)
            beat(g->lines[i]);
    }
    if (!g->supervisor || g->hung)
        return;
    if (g->resolving)
        look_up(g, w);
    supervisor_tick(g->supervisor, w->now_ms);
    follow(g, w);
    run(g, w);
}

void sim_agent_lose_gpu(struct sim_agent *g)
{
    struct json_writer w = WRITER_INIT;
    const struct gpu_rank rank = {supervisor_group(g->supervisor), g->rank};
    const struct gpu gpu = {
        .uuid = "GPU-3f0c", .name = "NVIDIA H200", .lost = true, .ranks = (struct gpu_rank *)&rank, .n_ranks = 1};
    writer_object(&w, NULL);
    writer_list(&w, "gpus");
    gpu_write(&w, &gpu);
    writer_list_end(&w);
    writer_object_end(&w);
    for (int i = 0; i < SIM_LINES; i++)
        say(g->lines[i], RECORD_HEARTBEAT, &w);
    writer_done(&w);
}
