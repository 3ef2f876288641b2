// SPDX-License-Identifier: Apache-2.0
// Agents come, go and are replaced; what their HELLO says; what they must not say.
#include "tests/unit/operator/agents/agents_fixture.h"

#include "common/base/str.h"
#include "operator/agents/reported_group.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

// Connections

static void of_a_pod_that_was_never_here_nothing_is_known(void **state)
{
    struct fixture *f = *state;
    const struct agent_facts *now = facts(f);
    assert_false(now->connected);
    assert_int_equal(now->changed_ms, 0);
    assert_int_equal(now->state, AGENT_IDLE);
    assert_int_equal(now->attempt, 0);
    assert_int_equal(now->n_processes, 0);
    assert_null(now->error);
}

static void an_agent_that_says_hello_is_connected_and_its_object_is_told(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    assert_true(facts(f)->connected);
    assert_int_equal(facts(f)->changed_ms, 1000000);
    assert_int_equal(agents_count(f->agents), 1);
    assert_int_equal(f->changes, 1);
    assert_string_equal(f->changed, "ml/g");
}

static void what_it_has_said_outlives_its_connection_for_as_long_as_the_pod(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO("{" GROUP ",\"attempt\":3,\"state\":\"Prepared\",\"processes\":[]}"));
    clock_fake_advance(&f->clock, 500);
    leave(f, 0);
    assert_int_equal(f->changes, 2);
    assert_false(facts(f)->connected);
    assert_int_equal(facts(f)->changed_ms, 1000000); // when the registry heard of it last
    assert_int_equal(facts(f)->state, AGENT_PREPARED);
    assert_int_equal(facts(f)->attempt, 3);
    assert_int_equal(agents_count(f->agents), 0);
    agents_pod_gone(f->agents, "pod-uid");
    assert_int_equal(facts(f)->attempt, 0);
    assert_int_equal(facts(f)->changed_ms, 0);
}

static void in_how_many_pods_a_group_runs_is_known_as_long_as_they_are_there(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(agents_running(f->agents, "group-uid"), 0);
    join(f, 0, HELLO("{" GROUP ",\"attempt\":3,\"state\":\"Running\",\"processes\":[]}"));
    assert_int_equal(agents_running(f->agents, "group-uid"), 1);
    assert_int_equal(agents_running(f->agents, "another"), 0);
    leave(f, 0);
    assert_int_equal(agents_running(f->agents, "group-uid"), 1); // by all that is known
    join(f, 0, HELLO("{" GROUP ",\"attempt\":3,\"state\":\"Stopping\",\"processes\":[]}"));
    assert_int_equal(agents_running(f->agents, "group-uid"), 1);
    leave(f, 0);
    join(f, 0, HELLO(""));
    assert_int_equal(agents_running(f->agents, "group-uid"), 0);
    leave(f, 0);
    join(f, 0, HELLO("{" GROUP ",\"attempt\":4,\"state\":\"Running\",\"processes\":[]}"));
    assert_int_equal(agents_running(f->agents, "group-uid"), 1);
    agents_pod_gone(f->agents, "pod-uid");
    assert_int_equal(agents_running(f->agents, "group-uid"), 0);
}

static void a_newer_connection_of_a_pod_takes_the_place_of_the_older_one(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    join(f, 0, HELLO(""));
    join(f, 1, HELLO(""));
    assert_ptr_equal(agents_replaced(f->agents), &f->connections[0]);
    assert_null(agents_replaced(f->agents));
    assert_int_equal(agents_count(f->agents), 1);
    assert_int_equal(give(f, 0, RECORD_PREPARED, "{" GROUP ",\"attempt\":9}", &err), 0);
    assert_int_equal(facts(f)->attempt, 0);
    leave(f, 0);
    assert_true(facts(f)->connected);
    command(f, RECORD_PREPARE, 1);
    assert_int_equal(f->connections[1].type, RECORD_PREPARE);
}

static void a_replaced_connection_may_end_before_its_owner_learns_of_it(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    join(f, 1, HELLO(""));
    leave(f, 0);
    assert_null(agents_replaced(f->agents));
}

static void the_connection_of_a_pod_that_is_gone_is_to_be_closed(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    agents_pod_gone(f->agents, "pod-uid");
    assert_ptr_equal(agents_replaced(f->agents), &f->connections[0]);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}"); // it is ignored
    assert_int_equal(facts(f)->changed_ms, 0);
}

// HELLO

static void hello_tells_all_that_an_agent_has(void **state)
{
    struct fixture *f = *state;
    join(
        f, 0,
        HELLO(
            "{" GROUP ",\"attempt\":4,\"state\":\"Running\",\"processes\":["
            "{\"rank\":6,\"attempt\":4,\"state\":\"Starting\"},{\"rank\":5,\"attempt\":3,\"state\":\"Running\"},"
            "{\"rank\":4,\"attempt\":3,\"state\":\"Exited\",\"exitCode\":137,\"signal\":9,\"lastLines\":\"oh\\n\"}]}"));
    const struct agent_facts *now = facts(f);
    assert_int_equal(now->state, AGENT_RUNNING);
    assert_int_equal(now->attempt, 4);
    assert_int_equal(now->n_processes, 3);
    expect_process(now, 0, 4, 3, AGENT_PROCESS_EXITED);
    expect_process(now, 1, 5, 3, AGENT_PROCESS_RUNNING);
    expect_process(now, 2, 6, 4, AGENT_PROCESS_STARTING);
    assert_int_equal(now->processes[0].exit_code, 137);
    assert_int_equal(now->processes[0].signal, 9);
    assert_string_equal(now->processes[0].last_lines, "oh\n");
    assert_string_equal(now->processes[0].message, "");
    assert_int_equal(now->processes[0].ended_ms, 1000000);
    assert_string_equal(buf_str(&f->exits), "group-uid attempt 3 rank 4: 137; ");
}

static void a_later_hello_wins_over_what_was_known(void **state)
{
    struct fixture *f = *state;
    join(f, 0,
         HELLO("{" GROUP ",\"attempt\":2,\"state\":\"Running\",\"processes\":["
               "{\"rank\":0,\"attempt\":2,\"state\":\"Exited\",\"exitCode\":1},"
               "{\"rank\":1,\"attempt\":2,\"state\":\"Running\"}]},"
               "{\"group\":\"other\",\"attempt\":7,\"state\":\"Prepared\",\"processes\":[]}"));
    command(f, RECORD_STOP, 2);
    leave(f, 0);
    clock_fake_advance(&f->clock, 5000);
    join(f, 0,
         HELLO("{" GROUP ",\"attempt\":2,\"state\":\"Stopping\",\"processes\":["
               "{\"rank\":0,\"attempt\":2,\"state\":\"Exited\",\"exitCode\":1}]}"));
    const struct agent_facts *now = facts(f);
    assert_int_equal(now->state, AGENT_STOPPING);
    assert_int_equal(now->sent, 0);
    assert_int_equal(now->n_processes, 1);
    assert_int_equal(now->processes[0].ended_ms, 1000000); // when the registry heard of it first
    assert_int_equal(facts_of(f, "other")->attempt, 0);
}

static void a_group_that_was_never_prepared_has_no_attempt(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO("{" GROUP ",\"attempt\":-1,\"state\":\"Idle\",\"processes\":[]}"));
    assert_int_equal(facts(f)->attempt, 0);
}

static void an_agent_may_be_held_to_its_own_group(void **state)
{
    struct fixture *f = *state;
    struct agent_identity id = POD;
    struct err err = ERR_INIT;
    id.group_uid = "group-uid";
    assert_int_equal(
        join_as(f, 0, &id, HELLO("{\"group\":\"x\",\"attempt\":1,\"state\":\"Idle\",\"processes\":[]}"), &err), 0);
    say(f, RECORD_EXITED, "{\"group\":\"x\",\"attempt\":1,\"rank\":0,\"exitCode\":1}");
    assert_int_equal(facts_of(f, "x")->attempt, 0);
    assert_string_equal(buf_str(&f->exits), "");
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":1}");
    assert_string_equal(buf_str(&f->exits), "group-uid attempt 1 rank 0: 1; ");
}

// In a pod of a PlacementGroup
static void of_a_shared_pod_each_group_is_told_by_itself(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct agent_identity pool = POD;
    struct agent_group *groups;
    pool.group = "pool";
    pool.of_placementgroup = true;
    assert_int_equal(
        join_as(f, 0, &pool, HELLO("{" GROUP ",\"attempt\":3,\"state\":\"Running\",\"processes\":[]}"), &err), 0);
    assert_string_equal(f->changed, "ml/pool: all");
    say(f, RECORD_PREPARED, "{\"group\":\"b\",\"attempt\":1,\"error\":\"taken\",\"takenPort\":29500}");
    assert_string_equal(f->changed, "ml/pool: b");
    assert_int_equal(facts_of(f, "b")->taken_port, 29500);
    assert_int_equal(facts(f)->state, AGENT_RUNNING);
    assert_int_equal(agents_groups(f->agents, "pod-uid", &f->arena, &groups), 2);
    assert_string_equal(groups[0].uid, "group-uid");
    assert_int_equal(groups[0].attempt, 3);
    say(f, RECORD_PREPARED, "{\"group\":\"b\",\"attempt\":1}");
    assert_int_equal(facts_of(f, "b")->taken_port, 0);
    leave(f, 0);
    assert_string_equal(f->changed, "ml/pool: all");
}

static void of_groups_that_are_not_in_the_pod_no_exit_counts(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct agent_identity pool = POD;
    pool.group = "pool";
    pool.of_placementgroup = true;
    assert_int_equal(join_as(f, 0, &pool, HELLO(""), &err), 0);
    say(f, RECORD_EXITED, "{\"group\":\"stranger\",\"attempt\":1,\"rank\":0,\"exitCode\":1}");
    say(f, RECORD_EXITED, "{\"group\":\"tenant\",\"attempt\":1,\"rank\":0,\"exitCode\":1}");
    assert_string_equal(buf_str(&f->exits), "tenant attempt 1 rank 0: 1; ");
}

static void a_hello_that_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"role\":\"worker\",\"version\":1}",
        "{\"role\":\"agent\",\"version\":2}",
        "{\"role\":\"agent\",\"version\":1,\"groups\":7}",
        HELLO("7"),
        HELLO("{\"attempt\":1,\"state\":\"Idle\"}"),
        HELLO("{\"group\":\"\",\"attempt\":1,\"state\":\"Idle\"}"),
        HELLO("{" GROUP ",\"attempt\":\"1\",\"state\":\"Idle\"}"),
        HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Dozing\"}"),
        HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Running\",\"processes\":{}}"),
        HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Running\",\"processes\":[{\"rank\":-1,\"attempt\":1}]}"),
        HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Running\",\"processes\":[{\"rank\":0,\"attempt\":1,\"state\":"
              "\"Exited\"}]}"),
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;
        assert_int_equal(join_as(f, 0, &POD, bad[i], &err), ERR_INVALID);
        assert_true(str_starts(err.msg, "HELLO of an agent: "));
    }
    assert_int_equal(f->changes, 0);
    assert_int_equal(agents_count(f->agents), 0);
}

// Peers that make errors

static void reports_that_make_no_sense_break_the_protocol(void **state)
{
    static const struct {
        uint8_t type;
        const char *body;
        int code;
    } bad[] = {
        {RECORD_PREPARED, "", ERR_INVALID},
        {RECORD_PREPARED, "[]", ERR_INVALID},
        {RECORD_PREPARED, "{\"attempt\":1}", ERR_INVALID},
        {RECORD_PREPARED, "{" GROUP "}", ERR_INVALID},
        {RECORD_PREPARED, "{" GROUP ",\"attempt\":2147483648}", ERR_INVALID},
        {RECORD_PREPARED, "{" GROUP ",\"attempt\":1,\"error\":7}", ERR_INVALID},
        {RECORD_STARTED, "{" GROUP ",\"attempt\":1,\"processes\":[7]}", ERR_INVALID},
        {RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"exitCode\":1}", ERR_INVALID},
        {RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":1}", ERR_INVALID},
        {RECORD_REFUSED, "{" GROUP ",\"attempt\":1,\"message\":\"no\"}", ERR_INVALID},
        {RECORD_REFUSED, "{\"command\":\"HELLO\"," GROUP ",\"attempt\":1}", ERR_INVALID},
        {RECORD_REFUSED, "{\"command\":\"KILL\"," GROUP ",\"attempt\":1}", ERR_INVALID},
        {RECORD_HELLO, HELLO(""), ERR_PROTO},
        {RECORD_START, "{}", ERR_PROTO},
        {RECORD_CALL, "{}", ERR_PROTO},
        {RECORD_WELCOME, "{}", ERR_PROTO},
    };
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;
        assert_int_equal(give(f, 0, bad[i].type, bad[i].body, &err), bad[i].code);
        assert_true(err.msg[0]);
    }
    assert_int_equal(f->changes, 1);
}

static void records_that_only_show_life_change_nothing(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_HEARTBEAT, "");
    say(f, RECORD_OUTPUT, "{" GROUP ",\"lines\":[]}");
    assert_int_equal(f->changes, 1);
}

static void agents_send_lines_only_while_somebody_listens(void **state)
{
    struct fixture *f = *state;
    struct agent_identity pool = {
        .ns = "ml", .group = "pool", .of_placementgroup = true, .pod = "p", .pod_uid = "pool-uid", .node = "n2"};
    struct err err = ERR_INIT;
    join(f, 0, HELLO(""));
    f->connections[0].body[0] = '\0';
    say(f, RECORD_OUTPUT, "{" GROUP ",\"lines\":[[0,\"unasked\"]]}");
    assert_string_equal(buf_str(&f->printed), "");
    agents_listen(f->agents, "group-uid", true);
    assert_int_equal(f->connections[0].type, RECORD_OUTPUT);
    assert_string_equal(f->connections[0].body, "{\"group\":\"group-uid\",\"listen\":true}");
    join_as(f, 1, &pool, HELLO(""), &err); // an agent that comes later is told, too, after its WELCOME
    assert_int_not_equal(f->connections[1].type, RECORD_OUTPUT);
    agents_welcomed(f->agents, f->connections[1].agent);
    assert_string_equal(f->connections[1].body, "{\"group\":\"group-uid\",\"listen\":true}");
    say(f, RECORD_OUTPUT, "{" GROUP ",\"lines\":[[0,\"a\"],[3,\"b\"]],\"dropped\":2}");
    say(f, RECORD_OUTPUT, "{\"group\":\"other\",\"lines\":[[0,\"c\"]]}");
    assert_string_equal(buf_str(&f->printed), "group-uid 0: a; group-uid 3: b; group-uid -2; ");
    agents_listen(f->agents, "group-uid", false);
    assert_string_equal(f->connections[1].body, "{\"group\":\"group-uid\",\"listen\":false}");
    say(f, RECORD_OUTPUT, "{" GROUP ",\"lines\":[[0,\"late\"]]}");
    assert_null(strstr(buf_str(&f->printed), "late"));
}

static void an_agent_prints_only_for_groups_that_it_may_have(void **state)
{
    static const struct agent_identity
        own = {.ns = "ml", .group = "g", .group_uid = "own", .pod = "g-0-0", .pod_uid = "u0", .node = "n1"},
        pool = {.ns = "ml", .group = "pool", .of_placementgroup = true, .pod = "p", .pod_uid = "u1", .node = "n2"};
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    agents_listen(f->agents, "own", true);
    agents_listen(f->agents, "stranger", true);
    join_as(f, 0, &own, HELLO(""), &err);
    join_as(f, 1, &pool, HELLO(""), &err);
    give(f, 0, RECORD_OUTPUT, "{\"group\":\"stranger\",\"lines\":[[0,\"a\"]]}", &err);
    give(f, 1, RECORD_OUTPUT, "{\"group\":\"stranger\",\"lines\":[[0,\"b\"]]}", &err);
    assert_string_equal(buf_str(&f->printed), "");
    give(f, 0, RECORD_OUTPUT, "{\"group\":\"own\",\"lines\":[[0,\"c\"]]}", &err);
    assert_string_equal(buf_str(&f->printed), "own 0: c; ");
}

static void lines_that_make_no_sense_break_the_protocol(void **state)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{" GROUP "}",
                                      "{" GROUP ",\"lines\":7}",
                                      "{" GROUP ",\"lines\":[7]}",
                                      "{" GROUP ",\"lines\":[[0]]}",
                                      "{" GROUP ",\"lines\":[[-1,\"a\"]]}",
                                      "{" GROUP ",\"lines\":[[0,7]]}"};
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;
        assert_int_equal(give(f, 0, RECORD_OUTPUT, bad[i], &err), ERR_INVALID);
    }
}

static void who_is_lost_was_heard_of_last_before(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    clock_fake_advance(&f->clock, 3000);
    say(f, RECORD_HEARTBEAT, "");
    clock_fake_advance(&f->clock, 9000);
    leave(f, 0);
    assert_int_equal(facts(f)->changed_ms, 1003000);
}

static void a_goodbye_says_since_when_the_pod_ends(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    assert_int_equal(facts(f)->ending_ms, 0);
    clock_fake_advance(&f->clock, 500);
    say(f, RECORD_GOODBYE, "{\"reason\":\"the pod ends\"}");
    clock_fake_advance(&f->clock, 500);
    say(f, RECORD_GOODBYE, "{\"reason\":\"the pod ends\"}");
    assert_int_equal(f->changes, 2);
    leave(f, 0);
    assert_int_equal(facts(f)->ending_ms, 1000500); // also after the connection has ended
}

// A wait of two seconds after an error would otherwise last for as long as the clock was put back.
static void its_times_move_with_a_clock_that_somebody_sets(void **state)
{
    struct fixture *f = *state;
    join(f, 0,
         HELLO("{" GROUP ",\"attempt\":4,\"state\":\"Running\",\"processes\":["
               "{\"rank\":4,\"attempt\":4,\"state\":\"Exited\",\"exitCode\":1,\"signal\":0}]}"));
    command(f, RECORD_STOP, 4);
    say(f, RECORD_REFUSED, "{" GROUP ",\"attempt\":4,\"command\":\"STOP\",\"error\":\"no\"}");
    say(f, RECORD_GOODBYE, "{}");
    agents_clock_moved(f->agents, -900000);
    const struct agent_facts *now = facts(f);
    assert_int_equal(now->changed_ms, 100000);
    assert_int_equal(now->ending_ms, 100000);
    assert_int_equal(now->error_ms, 100000);
    assert_int_equal(now->processes[0].ended_ms, 100000);
}

static void of_long_texts_a_part_is_kept(void **state)
{
    struct fixture *f = *state;
    char text[3001], lines[9001];
    memset(text, 'm', sizeof text - 1);
    for (size_t i = 0; i < 9000; i += 2)
        memcpy(&lines[i], "\xc3\xa9", 2);
    text[3000] = lines[9000] = '\0';
    join(f, 0, HELLO(""));
    say(f, RECORD_EXITED,
        arena_printf(&f->arena,
                     "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":1,\"message\":\"%s\",\"lastLines\":\"%s!\"}",
                     text, lines));
    const struct agent_process *p = &facts(f)->processes[0];
    assert_int_equal(strlen(p->message), REPORTED_MESSAGE_MAX);
    assert_true(strlen(p->last_lines) >= REPORTED_LAST_LINES_MAX - 1 &&
                strlen(p->last_lines) <= REPORTED_LAST_LINES_MAX);
    assert_true(str_utf8_valid(p->last_lines, strlen(p->last_lines)));
    assert_true(text_ends(p->last_lines, "!"));
}

static void all_texts_of_a_pod_together_are_bounded(void **state)
{
    struct fixture *f = *state;
    char lines[REPORTED_LAST_LINES_MAX + 1];
    memset(lines, 'x', sizeof lines - 1);
    lines[sizeof lines - 1] = '\0';
    join(f, 0, HELLO(""));
    for (int rank = 0; rank < 1000; rank++)
        say(f, RECORD_EXITED,
            arena_printf(&f->arena, "{" GROUP ",\"attempt\":1,\"rank\":%d,\"exitCode\":1,\"lastLines\":\"%s\"}", rank,
                         lines));
    const struct agent_facts *now = facts(f);
    size_t kept = 0;
    assert_int_equal(now->n_processes, 1000);
    for (size_t i = 0; i < now->n_processes; i++)
        kept += strlen(now->processes[i].last_lines);
    assert_in_range(kept, AGENTS_TEXT_MAX / 2, AGENTS_TEXT_MAX);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":2}"); // a forgotten group makes room
    say(f, RECORD_EXITED,
        arena_printf(&f->arena, "{" GROUP ",\"attempt\":2,\"rank\":7,\"exitCode\":1,\"lastLines\":\"%s\"}", lines));
    assert_string_equal(facts(f)->processes[0].last_lines, lines);
}

static void too_many_processes_break_the_protocol(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    join(f, 0, HELLO(""));
    for (int rank = 0; rank < 1024; rank++)
        say(f, RECORD_EXITED,
            arena_printf(&f->arena, "{" GROUP ",\"attempt\":1,\"rank\":%d,\"exitCode\":1}", 5000 - rank));
    assert_int_equal(give(f, 0, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":1}", &err), ERR_LIMIT);
}

static void of_too_many_groups_idle_ones_are_forgotten(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    join(f, 0, HELLO(""));
    for (int i = 0; i < AGENTS_GROUPS_MAX; i++)
        say(f, i == 7 ? RECORD_STOPPED : RECORD_PREPARED,
            arena_printf(&f->arena, "{\"group\":\"g%d\",\"attempt\":1}", i));
    say(f, RECORD_PREPARED, "{\"group\":\"more\",\"attempt\":1}");
    assert_int_equal(facts_of(f, "more")->attempt, 1);
    assert_int_equal(facts_of(f, "g7")->attempt, 0);
    assert_int_equal(facts_of(f, "g8")->attempt, 1);
    assert_int_equal(give(f, 0, RECORD_PREPARED, "{\"group\":\"even more\",\"attempt\":1}", &err), ERR_LIMIT);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(of_a_pod_that_was_never_here_nothing_is_known),
        T(an_agent_that_says_hello_is_connected_and_its_object_is_told),
        T(what_it_has_said_outlives_its_connection_for_as_long_as_the_pod),
        T(in_how_many_pods_a_group_runs_is_known_as_long_as_they_are_there),
        T(a_newer_connection_of_a_pod_takes_the_place_of_the_older_one),
        T(a_replaced_connection_may_end_before_its_owner_learns_of_it),
        T(the_connection_of_a_pod_that_is_gone_is_to_be_closed),
        T(hello_tells_all_that_an_agent_has),
        T(a_later_hello_wins_over_what_was_known),
        T(a_group_that_was_never_prepared_has_no_attempt),
        T(an_agent_may_be_held_to_its_own_group),
        T(of_a_shared_pod_each_group_is_told_by_itself),
        T(of_groups_that_are_not_in_the_pod_no_exit_counts),
        T(a_hello_that_makes_no_sense_is_refused_and_changes_nothing),
        T(reports_that_make_no_sense_break_the_protocol),
        T(records_that_only_show_life_change_nothing),
        T(agents_send_lines_only_while_somebody_listens),
        T(an_agent_prints_only_for_groups_that_it_may_have),
        T(lines_that_make_no_sense_break_the_protocol),
        T(who_is_lost_was_heard_of_last_before),
        T(a_goodbye_says_since_when_the_pod_ends),
        T(its_times_move_with_a_clock_that_somebody_sets),
        T(of_long_texts_a_part_is_kept),
        T(all_texts_of_a_pod_together_are_bounded),
        T(too_many_processes_break_the_protocol),
        T(of_too_many_groups_idle_ones_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
