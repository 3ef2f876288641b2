// SPDX-License-Identifier: Apache-2.0
// The supervisor as a table: inputs, and the actions that follow, as words. Then random inputs in random order.
#include "worker/agent/supervisor.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

struct fixture {
    struct supervisor *s;
    int64_t now;
    struct buf actions;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.s = supervisor_new("g-1"), .actions = BUF_INIT(64 * 1024)};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    supervisor_free(f->s);
    buf_done(&f->actions);
    return 0;
}

static const char *const report_words[] = {"prepared", "unprepared", "started", "exited", "stopped"};

static void describe(struct buf *out, const struct supervisor_action *a)
{
    if (out->len)
        buf_puts(out, ", ");
    if (a->type == SUPERVISOR_RESOLVE)
        buf_printf(out, "resolve %s", a->host);
    else if (a->type == SUPERVISOR_TRY_PORT)
        buf_printf(out, "try port %d", a->port);
    else if (a->type == SUPERVISOR_LAUNCH)
        buf_printf(out, "launch %d", a->rank);
    else if (a->type == SUPERVISOR_TERMINATE)
        buf_printf(out, "terminate %d in %d", a->rank, (int)a->grace_ms);
    else if (a->type == SUPERVISOR_KILL)
        buf_printf(out, "kill %d", a->rank);
    else if (a->report == SUPERVISOR_REPORT_EXITED)
        buf_printf(out, "exited %d/%d %d", a->attempt, a->rank, a->code);
    else
        buf_printf(out, "%s %d%s%s", report_words[a->report], a->attempt, a->message[0] ? ": " : "", a->message);
}

// Returns the actions since the last call.
static const char *actions(struct fixture *f)
{
    struct supervisor_action a;
    buf_reset(&f->actions);
    while (supervisor_next(f->s, &a))
        describe(&f->actions, &a);
    return buf_str(&f->actions);
}

static struct command *start_command(enum record_type type, int attempt, int first_rank, int n)
{
    struct command *c = command_new(type, "g-1", attempt);
    c->grace_ms = 5;
    c->n_processes = (size_t)n;
    c->processes = arena_array(&c->arena, c->n_processes, sizeof *c->processes);
    for (int i = 0; i < n; i++)
        c->processes[i] = (struct environment_process){.rank = first_rank + i, .local_rank = i};
    return c;
}

static int give(struct fixture *f, struct command *c)
{
    struct err err = ERR_INIT;
    int r = supervisor_command(f->s, f->now, c, &err);
    assert_int_equal(r, err.code);
    command_unref(c);
    return r;
}

static int prepare(struct fixture *f, int attempt, const char *ip)
{
    struct command *c = command_new(RECORD_PREPARE, "g-1", attempt);
    c->grace_ms = 7;
    c->timeout_ms = 1000;
    c->master_addr = ip ? "wg-0.wg.ns.svc" : NULL;
    c->master_ip = ip;
    return give(f, c);
}

static int start(struct fixture *f, int attempt, int n)
{
    return give(f, start_command(RECORD_START, attempt, 4, n));
}

static int restart(struct fixture *f, int attempt, int rank)
{
    return give(f, start_command(RECORD_RESTART, attempt, rank, 1));
}

static int stop(struct fixture *f, int attempt, int grace_ms)
{
    struct command *c = command_new(RECORD_STOP, "g-1", attempt);
    c->grace_ms = grace_ms;
    return give(f, c);
}

static int kill_rank(struct fixture *f, int attempt, int rank)
{
    struct command *c = command_new(RECORD_KILL, "g-1", attempt);
    c->rank = rank;
    return give(f, c);
}

static void end(struct fixture *f, int rank, int code)
{
    supervisor_exited(f->s, rank, code, 0);
    supervisor_gone(f->s, f->now, rank);
}

static void run(struct fixture *f, int attempt, int n)
{
    prepare(f, attempt, NULL);
    start(f, attempt, n);
    for (int i = 0; i < n; i++)
        supervisor_started(f->s, 4 + i);
    actions(f);
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_RUNNING);
}

static void a_group_runs_and_ends(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(prepare(f, 1, "10.0.0.1"), 0);
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
    supervisor_resolved(f->s, 0, true, "10.0.0.1");
    assert_string_equal(actions(f), "prepared 1");
    assert_int_equal(start(f, 1, 2), 0);
    assert_string_equal(actions(f), "launch 4, launch 5");
    supervisor_started(f->s, 4);
    assert_string_equal(actions(f), "");
    supervisor_started(f->s, 5);
    assert_string_equal(actions(f), "started 1");
    supervisor_exited(f->s, 4, 3, 0);
    assert_string_equal(actions(f), "exited 1/4 3");
    supervisor_gone(f->s, 0, 4);
    assert_string_equal(actions(f), "");
    assert_int_equal(stop(f, 1, 9), 0);
    assert_string_equal(actions(f), "terminate 5 in 9");
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_STOPPING);
    end(f, 5, 143);
    assert_string_equal(actions(f), "exited 1/5 143, stopped 1");
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_IDLE);
}

static void an_address_that_is_old_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    prepare(f, 1, "10.0.0.2");
    assert_int_equal(supervisor_deadline_ms(f->s), INT64_MAX);
    actions(f);
    supervisor_resolved(f->s, 0, false, "it resolves to 10.0.0.1");
    int64_t first = supervisor_deadline_ms(f->s);
    assert_in_range(first, 1, 999);
    supervisor_tick(f->s, first - 1);
    assert_string_equal(actions(f), "");
    supervisor_tick(f->s, first);
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
    supervisor_resolved(f->s, first, false, "it resolves to 10.0.0.1");
    assert_true(supervisor_deadline_ms(f->s) - first > first); // the pauses grow
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_PREPARING);
}

static void an_address_that_stays_old_is_reported_and_may_be_prepared_again(void **state)
{
    struct fixture *f = *state;
    int asked = 0;
    prepare(f, 1, "10.0.0.2");
    for (; supervisor_state(f->s) == SUPERVISOR_PREPARING; asked++) {
        actions(f);
        supervisor_resolved(f->s, f->now, false, "it resolves to 10.0.0.1");
        f->now = MIN(supervisor_deadline_ms(f->s), f->now + 1000);
        supervisor_tick(f->s, f->now);
    }
    assert_in_range(asked, 3, 20);
    assert_string_equal(actions(f), "unprepared 1: wg-0.wg.ns.svc does not resolve to 10.0.0.2, the pod of rank 0, "
                                    "within 1.0 s: it resolves to 10.0.0.1");
    assert_int_equal(prepare(f, 1, "10.0.0.2"), 0);
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
}

static int prepare_port(struct fixture *f, int attempt, int port)
{
    struct command *c = command_new(RECORD_PREPARE, "g-1", attempt);
    c->timeout_ms = 1000;
    c->master_addr = "wg-0.wg.ns.svc";
    c->master_ip = "10.0.0.1";
    c->master_port = port;
    return give(f, c);
}

static void the_port_of_rank_0_is_tried_once_its_name_is_right(void **state)
{
    struct fixture *f = *state;
    struct supervisor_action a;
    prepare_port(f, 1, 29500);
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
    supervisor_resolved(f->s, 0, true, "10.0.0.1");
    assert_string_equal(actions(f), "try port 29500");
    supervisor_port_tried(f->s, "it is taken");
    assert_true(supervisor_next(f->s, &a));
    assert_int_equal(a.report, SUPERVISOR_REPORT_UNPREPARED);
    assert_int_equal(a.port, 29500);
    assert_string_equal(a.message, "it is taken");
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_IDLE);
    prepare_port(f, 1, 29501);
    supervisor_resolved(f->s, 0, true, "10.0.0.1");
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc, try port 29501");
    supervisor_port_tried(f->s, NULL);
    assert_string_equal(actions(f), "prepared 1");
}

static void the_answer_to_an_older_question_does_not_count(void **state)
{
    struct fixture *f = *state;
    prepare(f, 1, "10.0.0.2");
    prepare(f, 2, "10.0.0.3");
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
    supervisor_resolved(f->s, 0, true, "10.0.0.2");
    assert_string_equal(actions(f), "resolve wg-0.wg.ns.svc");
    supervisor_resolved(f->s, 0, true, "10.0.0.3");
    assert_string_equal(actions(f), "prepared 2");
}

static void commands_of_an_older_attempt_are_refused(void **state)
{
    struct fixture *f = *state;
    run(f, 5, 1);
    assert_int_equal(prepare(f, 4, NULL), ERR_CONFLICT);
    assert_int_equal(start(f, 4, 1), ERR_CONFLICT);
    assert_int_equal(restart(f, 4, 4), ERR_CONFLICT);
    assert_int_equal(stop(f, 4, 0), ERR_CONFLICT);
    assert_string_equal(actions(f), "");
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_RUNNING);
}

static void what_was_stopped_stays_stopped(void **state)
{
    struct fixture *f = *state;
    run(f, 5, 1);
    stop(f, 5, 0);
    end(f, 4, 137);
    actions(f);
    assert_int_equal(prepare(f, 5, NULL), ERR_CONFLICT);
    assert_int_equal(start(f, 5, 1), ERR_CONFLICT);
    assert_int_equal(prepare(f, 6, NULL), 0);
    assert_string_equal(actions(f), "prepared 6");
}

static void nothing_starts_unprepared(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(start(f, 1, 1), ERR_CONFLICT);
    prepare(f, 1, "10.0.0.1");
    assert_int_equal(start(f, 1, 1), ERR_CONFLICT);
    supervisor_resolved(f->s, 0, true, "10.0.0.1");
    assert_int_equal(start(f, 2, 1), ERR_CONFLICT);
    assert_int_equal(restart(f, 1, 4), ERR_CONFLICT);
}

static void a_command_that_comes_again_is_only_reported_again(void **state)
{
    struct fixture *f = *state;
    prepare(f, 1, NULL);
    prepare(f, 1, NULL);
    assert_string_equal(actions(f), "prepared 1, prepared 1");
    start(f, 1, 2);
    start(f, 1, 2);
    assert_string_equal(actions(f), "launch 4, launch 5");
    supervisor_started(f->s, 4);
    supervisor_started(f->s, 5);
    start(f, 1, 2);
    assert_string_equal(actions(f), "started 1, started 1");
    end(f, 5, 2);
    start(f, 1, 2);
    assert_string_equal(actions(f), "exited 1/5 2, exited 1/5 2");
    stop(f, 1, 0);
    end(f, 4, 0);
    stop(f, 1, 0);
    assert_string_equal(actions(f), "terminate 4 in 0, exited 1/4 0, stopped 1, stopped 1");
}

static void a_newer_attempt_stops_the_older_one_first(void **state)
{
    struct fixture *f = *state;
    run(f, 1, 2);
    assert_int_equal(prepare(f, 2, NULL), 0);
    assert_string_equal(actions(f), "terminate 4 in 7, terminate 5 in 7");
    assert_int_equal(start(f, 2, 2), ERR_CONFLICT);
    end(f, 4, 143);
    assert_string_equal(actions(f), "exited 1/4 143");
    end(f, 5, 143);
    assert_string_equal(actions(f), "exited 1/5 143, stopped 1, prepared 2");
}

static void a_stop_also_ends_what_was_to_come_next(void **state)
{
    struct fixture *f = *state;
    run(f, 1, 1);
    prepare(f, 2, NULL);
    stop(f, 2, 3);
    end(f, 4, 143);
    assert_string_equal(actions(f), "terminate 4 in 7, terminate 4 in 3, exited 1/4 143, stopped 2");
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_IDLE);
}

static void a_late_stop_of_the_older_attempt_does_not_end_the_next(void **state)
{
    struct fixture *f = *state;
    run(f, 1, 1);
    stop(f, 1, 3);
    prepare(f, 2, NULL);
    stop(f, 1, 3);
    end(f, 4, 143);
    assert_string_equal(actions(f), "terminate 4 in 3, terminate 4 in 3, exited 1/4 143, stopped 1, prepared 2");
}

static void one_rank_is_restarted_among_the_others(void **state)
{
    struct fixture *f = *state;
    run(f, 1, 3);
    end(f, 5, 1);
    assert_int_equal(restart(f, 2, 5), 0);
    assert_string_equal(actions(f), "exited 1/5 1, launch 5");
    supervisor_started(f->s, 5);
    assert_string_equal(actions(f), "started 2");
    assert_int_equal(restart(f, 3, 4), 0); // the old process still runs
    assert_string_equal(actions(f), "terminate 4 in 5");
    assert_int_equal(restart(f, 3, 4), 0); // the same command again
    end(f, 4, 143);
    assert_string_equal(actions(f), "exited 1/4 143, launch 4");
    supervisor_started(f->s, 4);
    assert_string_equal(actions(f), "started 3");
    assert_int_equal(restart(f, 4, 9), ERR_CONFLICT); // this rank is not in the pod
}

// The end of a killed process is an exit like any other.
static void one_process_is_killed(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(kill_rank(f, 0, 4), ERR_CONFLICT);
    run(f, 1, 2);
    assert_int_equal(restart(f, 2, 5), 0);
    end(f, 5, 1);
    supervisor_started(f->s, 5);
    actions(f);
    assert_int_equal(kill_rank(f, 2, 4), ERR_CONFLICT); // the process belongs to attempt 1
    assert_int_equal(kill_rank(f, 1, 5), ERR_CONFLICT);
    assert_int_equal(kill_rank(f, 0, 6), ERR_CONFLICT); // no such rank
    assert_string_equal(actions(f), "");
    assert_int_equal(kill_rank(f, 1, 4), 0);
    assert_int_equal(kill_rank(f, 0, 5), 0);
    assert_string_equal(actions(f), "kill 4, kill 5");
    supervisor_exited(f->s, 4, 137, 9);
    assert_string_equal(actions(f), "exited 1/4 137");
    assert_int_equal(kill_rank(f, 1, 4), ERR_CONFLICT); // it has ended
    assert_int_equal(supervisor_state(f->s), SUPERVISOR_RUNNING);
}

static void a_process_that_cannot_start_is_an_exit_and_no_start(void **state)
{
    struct fixture *f = *state;
    prepare(f, 1, NULL);
    start(f, 1, 2);
    actions(f);
    end(f, 4, 127);
    supervisor_started(f->s, 5);
    assert_string_equal(actions(f), "exited 1/4 127");
}

static void the_end_of_the_pod_stops_all_and_refuses_the_rest(void **state)
{
    struct fixture *f = *state;
    run(f, 1, 2);
    supervisor_shutdown(f->s, 0, 11);
    assert_string_equal(actions(f), "terminate 4 in 11, terminate 5 in 11");
    assert_int_equal(prepare(f, 2, NULL), ERR_CONFLICT);
    assert_int_equal(kill_rank(f, 1, 4), 0); // the kill comes before its grace time is over
    assert_string_equal(actions(f), "kill 4");
    end(f, 4, 137);
    assert_int_equal(kill_rank(f, 1, 4), ERR_CONFLICT);
    end(f, 5, 0);
    assert_string_equal(actions(f), "exited 1/4 137, exited 1/5 0, stopped 1");
}

// Random inputs in random order. These must hold: a rank has one process at a time. A process is launched only in
// RUNNING, once for each attempt, and never for an older attempt. Every stop ends.
enum { SIM_RANKS = 5, SIM_STEPS = 400, SIM_LIVES = 300 };

struct sim {
    struct fixture *f;
    struct rand r;
    enum { DEAD, STARTING, ALIVE, LEFT } ranks[16]; // LEFT: the process has exited, its children still run
    bool asked;                                     // the address was requested
    int newest[16];                                 // the newest attempt that was launched
    int counts[5];
    int launched;
};

static void sim_act(struct sim *m, const struct supervisor_action *a)
{
    if (a->type == SUPERVISOR_REPORT) {
        m->counts[a->report]++;
        if (a->report == SUPERVISOR_REPORT_STOPPED)
            for (int i = 0; i < SIM_RANKS; i++)
                assert_int_equal(m->ranks[4 + i], DEAD);
    } else if (a->type == SUPERVISOR_RESOLVE) {
        assert_false(m->asked);
        m->asked = true;
    } else if (a->type == SUPERVISOR_TRY_PORT) {
        supervisor_port_tried(m->f->s, rand_below(&m->r, 2) ? NULL : "taken");
    } else if (a->type == SUPERVISOR_LAUNCH) {
        assert_int_equal(m->ranks[a->rank], DEAD);
        assert_int_equal(supervisor_state(m->f->s), SUPERVISOR_RUNNING);
        assert_int_equal(a->process->spec->rank, a->rank);
        assert_true(a->process->command->attempt > m->newest[a->rank]);
        m->newest[a->rank] = a->process->command->attempt;
        m->ranks[a->rank] = STARTING;
        m->launched++;
    } else {
        assert_int_not_equal(m->ranks[a->rank], DEAD);
    }
}

static void sim_process(struct sim *m, int rank)
{
    int what = m->ranks[rank];
    if (what == STARTING && rand_below(&m->r, 4) > 0) {
        m->ranks[rank] = ALIVE;
        supervisor_started(m->f->s, rank);
    } else if (what == STARTING || what == ALIVE) {
        m->ranks[rank] = LEFT;
        supervisor_exited(m->f->s, rank, (int)rand_below(&m->r, 3), 0);
    } else if (what == LEFT) {
        m->ranks[rank] = DEAD;
        supervisor_gone(m->f->s, m->f->now, rank);
    }
}

static void sim_command(struct sim *m)
{
    int attempt = MAX(supervisor_attempt(m->f->s) + (int)rand_range(&m->r, -1, 2), 0);
    switch (rand_below(&m->r, 4)) {
    case 0:
        if (rand_below(&m->r, 3) == 0)
            prepare_port(m->f, attempt, 29500);
        else
            prepare(m->f, attempt, rand_below(&m->r, 2) ? "10.0.0.1" : NULL);
        break;
    case 1:
        start(m->f, supervisor_attempt(m->f->s), 1 + (int)rand_below(&m->r, SIM_RANKS));
        break;
    case 2:
        restart(m->f, attempt, 4 + (int)rand_below(&m->r, SIM_RANKS));
        break;
    default:
        if (rand_below(&m->r, 3) == 0)
            stop(m->f, attempt, 1);
    }
}

static void sim_step(struct sim *m)
{
    struct supervisor_action a;
    m->f->now += (int64_t)rand_below(&m->r, 100);
    if (m->asked && rand_below(&m->r, 3) == 0) {
        m->asked = false;
        supervisor_resolved(m->f->s, m->f->now, rand_below(&m->r, 3) == 0, "something else");
    } else if (rand_below(&m->r, 3) == 0) {
        sim_command(m);
    } else {
        sim_process(m, 4 + (int)rand_below(&m->r, SIM_RANKS));
    }
    supervisor_tick(m->f->s, m->f->now);
    while (supervisor_next(m->f->s, &a))
        sim_act(m, &a);
}

static void sim_end(struct sim *m)
{
    struct supervisor_action a;
    int stopped = m->counts[SUPERVISOR_REPORT_STOPPED];
    stop(m->f, supervisor_attempt(m->f->s) + 10, 0);
    for (int i = 0; i < 2 * SIM_RANKS; i++) {
        while (supervisor_next(m->f->s, &a))
            sim_act(m, &a);
        int rank = 4 + i / 2;
        if (m->ranks[rank] == STARTING)
            m->ranks[rank] = ALIVE;
        sim_process(m, rank);
    }
    while (supervisor_next(m->f->s, &a))
        sim_act(m, &a);
    assert_true(m->counts[SUPERVISOR_REPORT_STOPPED] > stopped);
    assert_int_equal(supervisor_state(m->f->s), SUPERVISOR_IDLE);
    assert_int_equal(supervisor_process_count(m->f->s), 0);
}

static void whatever_happens_the_rules_hold(void **state)
{
    struct sim total = {0};
    for (unsigned life = 0; life < SIM_LIVES; life++) {
        struct sim m = {.f = *state, .newest = {[0 ... 15] = -1}};
        rand_seed(&m.r, life);
        for (int i = 0; i < SIM_STEPS; i++)
            sim_step(&m);
        sim_end(&m);
        for (int i = 0; i < 5; i++)
            total.counts[i] += m.counts[i];
        total.launched += m.launched;
        teardown(state);
        setup(state);
    }
    for (int i = 0; i < 5; i++)
        assert_true(total.counts[i] > SIM_LIVES / 4); // every kind of input was used
    assert_true(total.launched > 10 * SIM_LIVES);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_group_runs_and_ends),
        T(an_address_that_is_old_is_asked_for_again),
        T(an_address_that_stays_old_is_reported_and_may_be_prepared_again),
        T(the_port_of_rank_0_is_tried_once_its_name_is_right),
        T(the_answer_to_an_older_question_does_not_count),
        T(commands_of_an_older_attempt_are_refused),
        T(what_was_stopped_stays_stopped),
        T(nothing_starts_unprepared),
        T(a_command_that_comes_again_is_only_reported_again),
        T(a_newer_attempt_stops_the_older_one_first),
        T(a_stop_also_ends_what_was_to_come_next),
        T(a_late_stop_of_the_older_attempt_does_not_end_the_next),
        T(one_rank_is_restarted_among_the_others),
        T(one_process_is_killed),
        T(a_process_that_cannot_start_is_an_exit_and_no_start),
        T(the_end_of_the_pod_stops_all_and_refuses_the_rest),
        T(whatever_happens_the_rules_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
