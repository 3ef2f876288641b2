// SPDX-License-Identifier: Apache-2.0
// The life of an attempt in the registry of agents: commands go out, reports come in, and facts result.
#include "tests/unit/operator/agents/agents_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

// The life of an attempt

static void a_command_that_was_sent_is_remembered_until_it_is_answered(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    command(f, RECORD_PREPARE, 1);
    assert_string_equal(f->connections[0].body, "{}");
    assert_int_equal(facts(f)->state, AGENT_IDLE); // only reports of the agent count
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->state, AGENT_PREPARED);
    assert_int_equal(facts(f)->attempt, 1);
    command(f, RECORD_START, 1);
    say(f, RECORD_STARTED,
        "{" GROUP ",\"attempt\":1,\"processes\":[{\"rank\":1,\"attempt\":1},{\"rank\":0,\"attempt\":1}]}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->state, AGENT_RUNNING);
    expect_process(facts(f), 0, 0, 1, AGENT_PROCESS_RUNNING);
    expect_process(facts(f), 1, 1, 1, AGENT_PROCESS_RUNNING);
    command(f, RECORD_STOP, 1);
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":143,\"signal\":15}");
    assert_int_equal(facts(f)->sent, RECORD_STOP);
    expect_process(facts(f), 0, 0, 1, AGENT_PROCESS_EXITED);
    say(f, RECORD_STOPPED, "{" GROUP ",\"attempt\":1}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->state, AGENT_IDLE);
    assert_int_equal(facts(f)->n_processes, 0);
}

static void prepare_of_a_newer_attempt_is_answered_by_its_own_prepared_only(void **state)
{
    struct fixture *f = *state;
    join(f, 0,
         HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Running\",\"processes\":[{\"rank\":0,\"attempt\":1,\"state\":"
               "\"Running\"}]}"));
    command(f, RECORD_PREPARE, 2);
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":0}");
    say(f, RECORD_STOPPED, "{" GROUP ",\"attempt\":1}");
    assert_int_equal(facts(f)->sent, RECORD_PREPARE);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":2}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->attempt, 2);
    assert_int_equal(facts(f)->n_processes, 0);
}

static void the_answer_to_an_earlier_command_is_not_taken_for_that_of_a_later_one(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    command(f, RECORD_PREPARE, 1);
    command(f, RECORD_PREPARE, 2);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    assert_int_equal(facts(f)->sent, RECORD_PREPARE);
    say(f, RECORD_REFUSED, "{\"command\":\"START\"," GROUP ",\"attempt\":2,\"code\":\"CONFLICT\",\"message\":\"no\"}");
    say(f, RECORD_REFUSED,
        "{\"command\":\"PREPARE\"," GROUP ",\"attempt\":1,\"code\":\"CONFLICT\",\"message\":\"no\"}");
    assert_int_equal(facts(f)->sent, RECORD_PREPARE);
    assert_null(facts(f)->error);
}

static void a_process_that_cannot_be_run_answers_the_start(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    command(f, RECORD_START, 1);
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":127,\"message\":\"no such file: x\"}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->state, AGENT_RUNNING);
    assert_string_equal(facts(f)->processes[0].message, "no such file: x");
    assert_string_equal(facts(f)->processes[0].last_lines, "");
}

static void ranks_that_restart_one_by_one_have_attempts_of_their_own(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    say(f, RECORD_STARTED,
        "{" GROUP ",\"attempt\":1,\"processes\":[{\"rank\":0,\"attempt\":1},{\"rank\":1,\"attempt\":1}]}");
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":1,\"exitCode\":3}");
    command(f, RECORD_RESTART, 2);
    say(f, RECORD_STARTED,
        "{" GROUP ",\"attempt\":2,\"processes\":[{\"rank\":0,\"attempt\":1},{\"rank\":1,\"attempt\":2}]}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->attempt, 2);
    expect_process(facts(f), 0, 0, 1, AGENT_PROCESS_RUNNING);
    expect_process(facts(f), 1, 1, 2, AGENT_PROCESS_RUNNING);
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":1,\"exitCode\":3}"); // about the previous attempt
    expect_process(facts(f), 1, 1, 2, AGENT_PROCESS_RUNNING);
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":0}");
    expect_process(facts(f), 0, 0, 1, AGENT_PROCESS_EXITED);
}

static void what_has_ended_does_not_run_again_within_its_attempt(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":1,\"rank\":0,\"exitCode\":0}");
    say(f, RECORD_STARTED, "{" GROUP ",\"attempt\":1,\"processes\":[{\"rank\":0,\"attempt\":1}]}");
    expect_process(facts(f), 0, 0, 1, AGENT_PROCESS_EXITED);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}"); // the command came twice
    assert_int_equal(facts(f)->state, AGENT_RUNNING);
}

static void why_there_is_no_template_is_known_of_what_runs_now(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Running\",\"processes\":[],\"withoutTemplate\":\"x\"}"));
    assert_string_equal(facts(f)->slow, "x");
    say(f, RECORD_STARTED, "{" GROUP ",\"attempt\":2,\"processes\":[],\"withoutTemplate\":\"y\"}");
    assert_string_equal(facts(f)->slow, "y");
    say(f, RECORD_STARTED, "{" GROUP ",\"attempt\":3,\"processes\":[]}");
    assert_null(facts(f)->slow);
}

static void what_is_said_of_an_older_attempt_changes_nothing(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO("{" GROUP ",\"attempt\":5,\"state\":\"Prepared\",\"processes\":[]}"));
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":4,\"error\":\"late\"}");
    say(f, RECORD_STARTED, "{" GROUP ",\"attempt\":4}");
    say(f, RECORD_EXITED, "{" GROUP ",\"attempt\":4,\"rank\":0,\"exitCode\":1}");
    say(f, RECORD_STOPPED, "{" GROUP ",\"attempt\":4}");
    assert_int_equal(facts(f)->state, AGENT_PREPARED);
    assert_int_equal(facts(f)->attempt, 5);
    assert_int_equal(facts(f)->n_processes, 0);
    assert_null(facts(f)->error);
}

static void why_it_could_not_be_prepared_is_told_until_it_goes_well(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    command(f, RECORD_PREPARE, 1);
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1,\"error\":\"g-0.g does not resolve\"}");
    assert_int_equal(facts(f)->sent, 0);
    assert_int_equal(facts(f)->state, AGENT_IDLE);
    assert_string_equal(facts(f)->error, "g-0.g does not resolve");
    assert_int_equal(facts(f)->error_ms, 1000000);
    command(f, RECORD_PREPARE, 1);
    assert_string_equal(facts(f)->error, "g-0.g does not resolve");
    leave(f, 0);
    join(f, 0, HELLO("{" GROUP ",\"attempt\":1,\"state\":\"Idle\",\"processes\":[]}"));
    assert_string_equal(facts(f)->error, "g-0.g does not resolve");
    say(f, RECORD_PREPARED, "{" GROUP ",\"attempt\":1}");
    assert_null(facts(f)->error);
    assert_int_equal(facts(f)->error_ms, 0);
}

static void a_refusal_answers_the_command_and_says_why(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    command(f, RECORD_START, 1);
    say(f, RECORD_REFUSED,
        "{\"command\":\"START\"," GROUP ",\"attempt\":1,\"code\":\"CONFLICT\",\"message\":\"it is not prepared\"}");
    assert_int_equal(facts(f)->sent, 0);
    assert_string_equal(facts(f)->error, "it is not prepared");
    command(f, RECORD_START, 2);
    // It names no group.
    say(f, RECORD_REFUSED, "{\"command\":\"START\",\"code\":\"INVALID\",\"message\":\"not JSON\"}");
    assert_int_equal(facts(f)->sent, 0);
    assert_string_equal(facts(f)->error, "not JSON");
}

static void what_is_not_connected_cannot_be_commanded(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    assert_int_equal(agents_command(f->agents, "pod-uid", "group-uid", 1, RECORD_PREPARE, "{}", &err), ERR_UNAVAILABLE);
    join(f, 0, HELLO(""));
    command(f, RECORD_PREPARE, 1);
    leave(f, 0);
    assert_int_equal(facts(f)->sent, 0); // the command may never have arrived
    err = ERR_INIT;
    assert_int_equal(agents_command(f->agents, "pod-uid", "group-uid", 1, RECORD_PREPARE, "{}", &err), ERR_UNAVAILABLE);
}

static void a_command_that_could_not_be_sent_was_not_sent(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    join(f, 0, HELLO(""));
    f->connections[0].fails = ERR_LIMIT;
    assert_int_equal(agents_command(f->agents, "pod-uid", "group-uid", 1, RECORD_PREPARE, "{}", &err), ERR_LIMIT);
    assert_int_equal(facts(f)->sent, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_command_that_was_sent_is_remembered_until_it_is_answered),
        T(prepare_of_a_newer_attempt_is_answered_by_its_own_prepared_only),
        T(the_answer_to_an_earlier_command_is_not_taken_for_that_of_a_later_one),
        T(a_process_that_cannot_be_run_answers_the_start),
        T(ranks_that_restart_one_by_one_have_attempts_of_their_own),
        T(what_has_ended_does_not_run_again_within_its_attempt),
        T(why_there_is_no_template_is_known_of_what_runs_now),
        T(what_is_said_of_an_older_attempt_changes_nothing),
        T(why_it_could_not_be_prepared_is_told_until_it_goes_well),
        T(a_refusal_answers_the_command_and_says_why),
        T(what_is_not_connected_cannot_be_commanded),
        T(a_command_that_could_not_be_sent_was_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
