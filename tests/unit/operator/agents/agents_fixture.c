// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/agents/agents_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_changed(void *ctx, const char *ns, const char *group)
{
    struct fixture *f = ctx;
    f->changes++;
    snprintf(f->changed, sizeof f->changed, "%s/%s", ns, group);
}

static void on_placementgroup_changed(void *ctx, const char *ns, const char *owner, const char *group_uid)
{
    struct fixture *f = ctx;
    f->changes++;
    snprintf(f->changed, sizeof f->changed, "%s/%s: %s", ns, owner, group_uid ? group_uid : "all");
}

static bool may_report(void *ctx, const char *ns, const char *owner, const char *group_uid)
{
    (void)ctx;
    return strcmp(ns, "ml") == 0 && strcmp(owner, "pool") == 0 && strcmp(group_uid, "stranger") != 0;
}

static void on_exited(void *ctx, const char *group, uint32_t attempt, uint32_t rank, int exit_code,
                      const char *last_lines)
{
    struct fixture *f = ctx;
    (void)last_lines;
    buf_printf(&f->exits, "%s attempt %u rank %u: %d; ", group, attempt, rank, exit_code);
}

static void on_printed(void *ctx, const char *group, uint32_t rank, const char *text, size_t n)
{
    struct fixture *f = ctx;
    if (text)
        buf_printf(&f->printed, "%s %u: %.*s; ", group, rank, (int)n, text);
    else
        buf_printf(&f->printed, "%s -%zu; ", group, n);
}

static void on_gpus(void *ctx, const char *group, uint32_t rank, const char *json)
{
    struct fixture *f = ctx;
    buf_printf(&f->gpus, "%s %u %s\n", group, rank, json);
}

int fixture_setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    clock_fake_init(&f->clock, 1000, 1000000);
    f->exits = f->printed = f->gpus = BUF_INIT(1 << 20);
    f->agents = agents_new(&(struct agents_config){.clock = &f->clock.clock,
                                                   .changed = on_changed,
                                                   .placementgroup_changed = on_placementgroup_changed,
                                                   .may_report = may_report,
                                                   .exited = on_exited,
                                                   .printed = on_printed,
                                                   .gpus = on_gpus,
                                                   .ctx = f});
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (f->connections[i].agent)
            agents_leave(f->agents, f->connections[i].agent);
    agents_free(f->agents);
    arena_done(&f->arena);
    buf_done(&f->exits);
    buf_done(&f->printed);
    buf_done(&f->gpus);
    free(f);
    return 0;
}

static int send_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    struct connection *c = owner;
    if (c->fails)
        return err_set(err, c->fails, "full");
    c->type = type;
    snprintf(c->body, sizeof c->body, "%.*s", (int)len, body);
    return 0;
}

int join_as(struct fixture *f, int connection, const struct agent_identity *id, const char *hello, struct err *err)
{
    struct connection *c = &f->connections[connection];
    return agents_join(f->agents, id, hello, strlen(hello), send_command, c, &c->agent, err);
}

void join(struct fixture *f, int connection, const char *hello)
{
    struct err err = ERR_INIT;
    if (join_as(f, connection, &POD, hello, &err) < 0)
        fail_msg("%s", err.msg);
}

void leave(struct fixture *f, int connection)
{
    agents_leave(f->agents, f->connections[connection].agent);
    f->connections[connection].agent = NULL;
}

int give(struct fixture *f, int connection, uint8_t type, const char *body, struct err *err)
{
    struct record r = {.h = {.type = type, .rank = RECORD_GROUP}, .body = body, .len = strlen(body)};
    return agents_record(f->agents, f->connections[connection].agent, &r, err);
}

void say(struct fixture *f, uint8_t type, const char *body)
{
    struct err err = ERR_INIT;
    if (give(f, 0, type, body, &err) < 0)
        fail_msg("%s", err.msg);
}

const struct agent_facts *facts_of(struct fixture *f, const char *group)
{
    struct agent_facts *facts = arena_new(&f->arena, struct agent_facts);
    agents_facts(f->agents, "pod-uid", group, &f->arena, facts);
    return facts;
}

const struct agent_facts *facts(struct fixture *f)
{
    return facts_of(f, "group-uid");
}

void command(struct fixture *f, uint8_t type, int attempt)
{
    struct err err = ERR_INIT;
    if (agents_command(f->agents, "pod-uid", "group-uid", attempt, type, "{}", &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(facts(f)->sent, type);
    assert_int_equal(facts(f)->sent_attempt, attempt);
}

void expect_process(const struct agent_facts *facts, size_t i, int rank, int attempt, enum agent_process_state state)
{
    assert_true(i < facts->n_processes);
    assert_int_equal(facts->processes[i].rank, rank);
    assert_int_equal(facts->processes[i].attempt, attempt);
    assert_int_equal(facts->processes[i].state, state);
}
