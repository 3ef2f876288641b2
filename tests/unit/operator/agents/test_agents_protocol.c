// SPDX-License-Identifier: Apache-2.0
// Both sides of the protocol between agents and the operator, in one process. A real agent with real processes sends
// its reports to the registry, and gets its orders from there.
#include "operator/agents/agents.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/patience.h"
#include "worker/agent/agent.h"
#include "worker/agent/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPLICAS = 2 };

struct fixture;

struct replica { // a replica of the operator, and its connection to the agent
    struct fixture *fixture;
    struct agents *agents;
    struct connected_agent *peer; // the agent in the registry; NULL = no connection
};

struct fixture {
    int refused; // the rank of a refused KILL
    struct loop *loop;
    struct agent *agent; // the real agent
    struct replica replicas[REPLICAS];
    struct arena arena;
    int null_fd;
};

static struct record as_record(enum record_type type, const struct json_writer *w)
{
    return (struct record){
        .h = {.type = (uint8_t)type, .rank = RECORD_GROUP}, .body = buf_str(&w->buf), .len = w->buf.len};
}

static void tell(struct replica *r, enum record_type type, struct json_writer *w)
{
    struct err err = ERR_INIT;
    struct record record = as_record(type, w);
    if (r->peer && agents_record(r->agents, r->peer, &record, &err) < 0)
        fail_msg("%s", err.msg);
}

static void on_report(void *ctx, const struct agent_report *report)
{
    struct fixture *f = ctx;
    struct json_writer w;
    enum record_type type = message_report(report, &w);
    for (size_t i = 0; i < REPLICAS; i++)
        tell(&f->replicas[i], type, &w);
    writer_done(&w);
}

static void on_done(void *ctx)
{
    (void)ctx;
}

struct order { // an order that has not arrived at the agent
    struct replica *replica;
    uint8_t type;
    char *body;
};

// Takes a command as worker/agent/agent_connection.c does.
static void deliver(void *ctx)
{
    struct order *o = ctx;
    struct command *c = NULL;
    struct err err = ERR_INIT;
    struct json_writer w;
    assert_true(command_is(o->type));
    if (command_parse(o->type, o->body, strlen(o->body), &c, &err) == 0)
        agent_command(o->replica->fixture->agent, c, &err);
    if (err.code < 0) {
        message_refused(o->type, c, &err, &w);
        tell(o->replica, RECORD_REFUSED, &w);
        writer_done(&w);
    }
    command_unref(c);
    free(o->body);
    free(o);
}

static int on_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    struct replica *r = owner;
    struct order *o = xmalloc(sizeof *o);
    (void)len, (void)err;
    *o = (struct order){r, type, xstrdup(body)};
    loop_defer(r->fixture->loop, deliver, o);
    return 0;
}

static void connect(struct fixture *f, int replica)
{
    static const struct agent_identity id = {.ns = "ml", .group = "g", .pod = "g-0-0", .pod_uid = "pod", .node = "n"};
    struct replica *r = &f->replicas[replica];
    struct json_writer w;
    struct err err = ERR_INIT;
    message_hello(f->agent, NULL, &w);
    if (agents_join(r->agents, &id, buf_str(&w.buf), w.buf.len, on_command, r, &r->peer, &err) < 0)
        fail_msg("%s", err.msg);
    writer_done(&w);
}

static void disconnect(struct fixture *f, int replica)
{
    struct replica *r = &f->replicas[replica];
    agents_leave(r->agents, TAKE_PTR(r->peer));
}

static void on_kill_refused(void *ctx, const char *group_uid, uint32_t rank, const char *why)
{
    struct fixture *f = ctx;
    assert_string_equal(group_uid, "u-1");
    assert_string_equal(why, "no process of rank 1 runs here");
    f->refused = (int)rank;
}

static int setup(void **state)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    struct fixture *f = *state = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    f->agent = agent_new(&(struct agent_config){.loop = f->loop,
                                                .out = f->null_fd,
                                                .err = f->null_fd,
                                                .env = env,
                                                .gpus = GPUS_UNKNOWN,
                                                .report = on_report,
                                                .done = on_done,
                                                .ctx = f});
    for (size_t i = 0; i < REPLICAS; i++)
        f->replicas[i] = (struct replica){f,
                                          agents_new(&(struct agents_config){
                                              .clock = loop_clock(f->loop), .kill_refused = on_kill_refused, .ctx = f}),
                                          NULL};
    connect(f, 0);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < REPLICAS; i++)
        if (f->replicas[i].peer)
            disconnect(f, i);
    agent_free(f->agent);
    for (int i = 0; i < REPLICAS; i++)
        agents_free(f->replicas[i].agents);
    loop_free(f->loop);
    close(f->null_fd);
    arena_done(&f->arena);
    free(f);
    return 0;
}

static const struct agent_facts *facts(struct fixture *f, int replica)
{
    struct agent_facts *facts = arena_new(&f->arena, struct agent_facts);
    agents_facts(f->replicas[replica].agents, "pod", "u-1", &f->arena, facts);
    return facts;
}

#define UNTIL(f, condition) TURN_UNTIL(loop_run_once((f)->loop, 100), condition, "")

// Sends it from replica 0, and waits for the answer.
static void order(struct fixture *f, uint8_t type, int attempt, const char *more)
{
    struct err err = ERR_INIT;
    const char *body = arena_printf(&f->arena, "{\"group\":\"u-1\",\"attempt\":%d%s}", attempt, more);
    if (agents_command(f->replicas[0].agents, "pod", "u-1", attempt, type, body, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(facts(f, 0)->sent, type);
    UNTIL(f, facts(f, 0)->sent == 0);
}

#define WORLD(command)                                                                      \
    ",\"name\":\"g\",\"namespace\":\"ml\",\"nodes\":1,\"nodeRank\":0,\"masterAddr\":\"m\"," \
    "\"masterPort\":29500,\"worldSize\":2,\"localWorldSize\":2,\"command\":[\"sh\",\"-c\",\"" command "\"]"
#define BOTH ",\"processes\":[{\"rank\":0,\"localRank\":0,\"ticket\":\"t0\"},{\"rank\":1,\"localRank\":1}]"
#define RANK_1 ",\"processes\":[{\"rank\":1,\"localRank\":1}]"

static void run(struct fixture *f, int attempt, const char *command_and_ranks)
{
    order(f, RECORD_PREPARE, attempt, "");
    assert_int_equal(facts(f, 0)->state, AGENT_PREPARED);
    order(f, RECORD_START, attempt, command_and_ranks);
    assert_int_equal(facts(f, 0)->state, AGENT_RUNNING);
    assert_int_equal(facts(f, 0)->attempt, attempt);
}

static bool process_is(const struct agent_facts *facts, size_t i, int attempt, enum agent_process_state state)
{
    return i < facts->n_processes && facts->processes[i].rank == (int)i && facts->processes[i].attempt == attempt &&
           facts->processes[i].state == state;
}

// Both replicas must know the same, whichever of them commands.
static void assert_agreed(struct fixture *f)
{
    const struct agent_facts *a = facts(f, 0), *b = facts(f, 1);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->n_processes, b->n_processes);
    for (size_t i = 0; i < a->n_processes; i++) {
        assert_int_equal(a->processes[i].rank, b->processes[i].rank);
        assert_int_equal(a->processes[i].attempt, b->processes[i].attempt);
        assert_int_equal(a->processes[i].state, b->processes[i].state);
        assert_int_equal(a->processes[i].exit_code, b->processes[i].exit_code);
        assert_string_equal(a->processes[i].last_lines, b->processes[i].last_lines);
    }
}

static void a_life_from_hello_to_stopped(void **state)
{
    struct fixture *f = *state;
    connect(f, 1);
    assert_int_equal(facts(f, 0)->attempt, 0);
    run(f, 1, WORLD("exec sleep 1000") BOTH);
    assert_true(process_is(facts(f, 0), 0, 1, AGENT_PROCESS_RUNNING));
    assert_true(process_is(facts(f, 0), 1, 1, AGENT_PROCESS_RUNNING));
    assert_agreed(f);
    order(f, RECORD_STOP, 1, "");
    assert_int_equal(facts(f, 0)->state, AGENT_IDLE);
    assert_int_equal(facts(f, 0)->n_processes, 0);
    assert_agreed(f);
}

static void a_process_that_ends_is_told_with_its_last_lines(void **state)
{
    struct fixture *f = *state;
    connect(f, 1);
    run(f, 1, WORLD("[ $RANK = 0 ] && exec sleep 1000; echo the disk is full; exit 3") BOTH);
    UNTIL(f, process_is(facts(f, 0), 1, 1, AGENT_PROCESS_EXITED));
    const struct agent_facts *now = facts(f, 0);
    assert_int_equal(now->processes[1].exit_code, 3);
    assert_int_equal(now->processes[1].signal, 0);
    assert_string_equal(now->processes[1].last_lines, "the disk is full\n");
    assert_true(process_is(now, 0, 1, AGENT_PROCESS_RUNNING));
    assert_agreed(f);
}

static void the_next_attempt_takes_the_place_of_the_one_before(void **state)
{
    struct fixture *f = *state;
    run(f, 1, WORLD("exec sleep 1000") BOTH);
    run(f, 2, WORLD("exec sleep 1000") BOTH);
    assert_true(process_is(facts(f, 0), 0, 2, AGENT_PROCESS_RUNNING));
    assert_true(process_is(facts(f, 0), 1, 2, AGENT_PROCESS_RUNNING));
}

static void one_rank_restarts_beside_the_others(void **state)
{
    struct fixture *f = *state;
    connect(f, 1);
    run(f, 1, WORLD("[ $RANK = 0 ] && exec sleep 1000; exit 3") BOTH);
    UNTIL(f, process_is(facts(f, 0), 1, 1, AGENT_PROCESS_EXITED));
    order(f, RECORD_RESTART, 2, WORLD("exec sleep 1000") RANK_1);
    assert_int_equal(facts(f, 0)->attempt, 2);
    assert_true(process_is(facts(f, 0), 0, 1, AGENT_PROCESS_RUNNING));
    assert_true(process_is(facts(f, 0), 1, 2, AGENT_PROCESS_RUNNING));
    assert_agreed(f);
}

static void a_command_that_cannot_be_run_is_an_exit_with_a_reason(void **state)
{
    struct fixture *f = *state;
    order(f, RECORD_PREPARE, 1, "");
    order(f, RECORD_START, 1,
          ",\"name\":\"g\",\"namespace\":\"ml\",\"nodes\":1,\"nodeRank\":0,\"masterAddr\":\"m\",\"masterPort\":29500,"
          "\"worldSize\":2,\"localWorldSize\":2,\"command\":[\"/no/such\"]" BOTH);
    UNTIL(f, process_is(facts(f, 0), 1, 1, AGENT_PROCESS_EXITED));
    assert_int_equal(facts(f, 0)->processes[1].exit_code, 127);
    assert_true(str_starts(facts(f, 0)->processes[1].message, "cannot start /no/such: "));
}

// Returns one of our processes. The kernel lists them by the thread that has started them, and we have one thread.
static bool a_child_is_stopped(void)
{
    char path[64], line[512];
    int pid;
    bool stopped = false;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%d", &pid) == 1 && !stopped) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *stat = fopen(path, "re");
        const char *state = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
        stopped = state && state[1] == ' ' && state[2] == 'T';
        if (stat)
            fclose(stat);
    }
    if (children)
        fclose(children);
    return stopped;
}

// A stopped process reads nothing, runs no signal handler, and answers no ping.
static void one_that_hangs_is_killed(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    run(f, 1, WORLD("[ $RANK = 0 ] && exec sleep 1000; echo I wait; kill -STOP $$$$; exit 3") BOTH);
    UNTIL(f, a_child_is_stopped());
    assert_int_equal(agents_kill(f->replicas[1].agents, "pod", "u-1", 1, 1, &err), ERR_UNAVAILABLE);
    connect(f, 1);
    assert_int_equal(agents_kill(f->replicas[1].agents, "pod", "u-1", 1, 1, &err), 0); // any replica may ask
    UNTIL(f, process_is(facts(f, 0), 1, 1, AGENT_PROCESS_EXITED));
    const struct agent_facts *now = facts(f, 0);
    assert_int_equal(now->processes[1].exit_code, 137);
    assert_string_equal(now->processes[1].last_lines, "I wait\nrank 1 was killed by a client (group.kill)\n");
    assert_true(process_is(now, 0, 1, AGENT_PROCESS_RUNNING));
    assert_agreed(f);
    f->refused = -1;
    assert_int_equal(agents_kill(f->replicas[1].agents, "pod", "u-1", 1, 1, &err), 0);
    UNTIL(f, f->refused == 1); // the process has ended
    assert_null(facts(f, 1)->error);
    order(f, RECORD_RESTART, 2, WORLD("exec sleep 1000") RANK_1);
    assert_true(process_is(facts(f, 1), 1, 2, AGENT_PROCESS_RUNNING));
}

static void what_happens_without_a_connection_is_in_the_next_hello(void **state)
{
    struct fixture *f = *state;
    connect(f, 1);
    run(f, 1, WORLD("[ $RANK = 0 ] && exec sleep 1000; read x; exit 4") BOTH);
    disconnect(f, 0);
    UNTIL(f, process_is(facts(f, 1), 1, 1, AGENT_PROCESS_EXITED));
    connect(f, 0);
    assert_agreed(f);
    assert_int_equal(facts(f, 0)->processes[1].exit_code, 4);
}

static void a_replica_that_comes_late_knows_the_same(void **state)
{
    struct fixture *f = *state;
    run(f, 1, WORLD("[ $RANK = 0 ] && exec sleep 1000; exit 4") BOTH);
    UNTIL(f, process_is(facts(f, 0), 1, 1, AGENT_PROCESS_EXITED));
    order(f, RECORD_RESTART, 2, WORLD("exec sleep 1000") RANK_1);
    connect(f, 1);
    assert_agreed(f);
}

static void commands_may_come_twice(void **state)
{
    struct fixture *f = *state;
    order(f, RECORD_PREPARE, 1, "");
    order(f, RECORD_PREPARE, 1, "");
    order(f, RECORD_START, 1, WORLD("exec sleep 1000") BOTH);
    order(f, RECORD_START, 1, WORLD("exec sleep 1000") BOTH);
    order(f, RECORD_PREPARE, 1, "");
    assert_int_equal(facts(f, 0)->state, AGENT_RUNNING);
    order(f, RECORD_STOP, 1, "");
    order(f, RECORD_STOP, 1, "");
    assert_int_equal(facts(f, 0)->state, AGENT_IDLE);
    assert_null(facts(f, 0)->error);
}

static void refusals_say_why(void **state)
{
    struct fixture *f = *state;
    order(f, RECORD_START, 1, WORLD("true") BOTH);
    assert_true(str_starts(facts(f, 0)->error, "attempt 1 of group u-1 cannot start: it is not prepared"));
    order(f, RECORD_PREPARE, 2, ",\"masterAddr\":7");
    assert_true(str_starts(facts(f, 0)->error, "a command with contradictory values: masterAddr: "));
    order(f, RECORD_PREPARE, 2, "");
    assert_null(facts(f, 0)->error);
}

static void a_master_that_does_not_resolve_is_told(void **state)
{
    struct fixture *f = *state;
    order(f, RECORD_PREPARE, 1, ",\"masterAddr\":\"127.0.0.1\",\"masterIP\":\"127.0.0.9\",\"timeoutMs\":100");
    assert_int_equal(facts(f, 0)->state, AGENT_IDLE);
    assert_int_equal(facts(f, 0)->attempt, 1);
    assert_true(str_starts(facts(f, 0)->error, "127.0.0.1 does not resolve to 127.0.0.9"));
    order(f, RECORD_PREPARE, 1, ",\"masterAddr\":\"127.0.0.1\",\"masterIP\":\"127.0.0.1\"");
    assert_int_equal(facts(f, 0)->state, AGENT_PREPARED);
    assert_null(facts(f, 0)->error);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_life_from_hello_to_stopped),
        T(a_process_that_ends_is_told_with_its_last_lines),
        T(the_next_attempt_takes_the_place_of_the_one_before),
        T(one_rank_restarts_beside_the_others),
        T(a_command_that_cannot_be_run_is_an_exit_with_a_reason),
        T(one_that_hangs_is_killed),
        T(what_happens_without_a_connection_is_in_the_next_hello),
        T(a_replica_that_comes_late_knows_the_same),
        T(commands_may_come_twice),
        T(refusals_say_why),
        T(a_master_that_does_not_resolve_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
