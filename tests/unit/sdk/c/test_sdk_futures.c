// SPDX-License-Identifier: Apache-2.0
// Calls whose answers are kept, and waiting for several.
#include "tests/unit/sdk/c/sdk_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static uint64_t keep(struct fixture *f, const char *method)
{
    uint64_t id;
    cadre_client_request r = request_of(method);
    r.keep = 1;
    if (cadre_client_start(f->client, &r, &id, &f->error) != CADRE_CLIENT_OK)
        fail_msg("%s", f->error.message);
    return id;
}

// The answer, as text; an error as "CODE message".
static const char *get(struct fixture *f, uint64_t id)
{
    static char text[2048];
    cadre_client_json result = {NULL, 0};
    cadre_client_code code = cadre_client_get(f->client, id, &result, &f->error);
    if (code == CADRE_CLIENT_OK)
        snprintf(text, sizeof text, "%.*s", (int)(result.len > 1000 ? 1000 : result.len), result.text);
    else
        snprintf(text, sizeof text, "%s %s", cadre_client_code_name(code), f->error.message);
    return text;
}

static void wait_for_all(struct fixture *f)
{
    while (cadre_client_pending(f->client))
        cadre_client_wait(f->client, PATIENCE_MS);
}

static size_t wait_for_some(struct fixture *f, uint64_t *ids, size_t n, size_t num_returns, int64_t timeout_ms)
{
    size_t ready = 0;
    if (cadre_client_wait_for(f->client, ids, n, num_returns, timeout_ms, &ready, &f->error) != CADRE_CLIENT_OK)
        fail_msg("%s", f->error.message);
    return ready;
}

// Keeping

static void an_answer_is_kept_until_it_is_taken(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t a = keep(f, "first"), b = keep(f, "second");
    assert_false(cadre_client_done(f->client, a));
    wait_for_all(f);
    assert_true(cadre_client_done(f->client, a));
    assert_string_equal(get(f, b), "\"second\"");
    assert_string_equal(get(f, a), "\"first\"");
    assert_true(cadre_client_done(f->client, a)); // also when it was taken
    get(f, a);
    assert_int_equal(f->error.code, CADRE_CLIENT_INVALID);
    assert_non_null(strstr(f->error.message, "it was taken or forgotten, or the call did not ask to keep it"));
}

static void taking_an_answer_waits_for_it(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_string_equal(get(f, keep(f, "first")), "\"first\"");
}

static void an_error_is_kept_as_well(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t id = keep(f, "fail");
    wait_for_all(f);
    assert_string_equal(get(f, id), "UNAVAILABLE rank 2 of ml/llama exited with code 137");
    assert_int_equal(f->error.rank, 2);
    assert_string_equal(f->error.pod, "llama-2-0");
}

static void a_call_that_did_not_ask_for_it_has_nothing_to_take(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    open_client(f);
    uint64_t id = start_method(f, "echo", &o);
    get(f, id);
    assert_int_equal(f->error.code, CADRE_CLIENT_INVALID);
    wait_for(f, &o);
}

static void a_callback_comes_as_well(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    cadre_client_request r = request_of("first");
    open_client(f);
    r.keep = 1;
    uint64_t id = start(f, r, &o);
    wait_for(f, &o);
    assert_string_equal(o.text, "\"first\"");
    assert_string_equal(get(f, id), "\"first\"");
}

static void kept_answers_count_for_the_limits(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    cadre_client_request r = request_of("big");
    uint64_t ids[2];
    o.max_calls = 2;
    o.max_bytes = 100000;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
    r.keep = 1;
    r.args = J("[60000]");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cadre_client_start(f->client, &r, &ids[i], &f->error), CADRE_CLIENT_OK);
        wait_for_all(f);
    }
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(f->error.message, "0 calls have no answer yet and 2 answers are kept"));
    assert_int_equal(cadre_client_get(f->client, ids[1], NULL, &f->error), CADRE_CLIENT_LIMIT);
    assert_int_equal(f->error.may_have_run, 1);
    assert_int_equal(cadre_client_get(f->client, ids[0], NULL, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
}

static void an_answer_that_is_forgotten_makes_room(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    o.max_calls = 1;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
    uint64_t before = keep(f, "first");
    cadre_client_forget(f->client, before); // before it was answered
    wait_for_all(f);
    uint64_t after = keep(f, "first");
    wait_for_all(f);
    cadre_client_forget(f->client, after);
    cadre_client_forget(f->client, after); // nothing happens
    assert_string_equal(get(f, keep(f, "second")), "\"second\"");
}

static void closing_drops_what_is_kept(void **state)
{
    struct fixture *f = *state; // the leak checker looks
    open_client(f);
    keep(f, "first");
    keep(f, "fail");
    wait_for_all(f);
    cadre_client_next(f->client, 0);
    keep(f, "mute");
    cadre_client_process(f->client);
}

static void ranks_need_not_send_what_nobody_wants(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = request_of("first");
    open_client(f);
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK); // no callback, not kept
    wait_for_all(f);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "QUIET CALL -1/0/0 {\"method\":\"first\""), 1);
    get(f, keep(f, "second"));
    assert_int_equal(sdk_proxy_saw(&f->proxy, "QUIET CALL -1/0/0 {\"method\":\"second\""), 0);
    r = request_of("third");
    r.no_result = 1;
    call(f, &r);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "QUIET CALL -1/0/0 {\"method\":\"third\""), 1);
}

// The next one

static void answers_are_handed_out_as_they_come(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t slow = keep(f, "mute"), a = keep(f, "first"), b = keep(f, "fail");
    assert_int_equal(cadre_client_next(f->client, PATIENCE_MS), a);
    assert_int_equal(cadre_client_next(f->client, PATIENCE_MS), b);
    assert_int_equal(cadre_client_next(f->client, 10), 0);
    assert_int_equal(cadre_client_cancel(f->client, slow), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_next(f->client, -1), slow);
    assert_int_equal(cadre_client_next(f->client, -1), 0); // there is no more
    assert_string_equal(get(f, a), "\"first\"");
    assert_string_equal(get(f, slow), "CANCELED mute() was canceled");
}

static void what_was_taken_is_not_handed_out(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    open_client(f);
    uint64_t a = keep(f, "first"), b = keep(f, "second");
    start_method(f, "echo", &o); // not kept
    wait_for_all(f);
    get(f, a);
    assert_int_equal(cadre_client_next(f->client, -1), b);
    assert_int_equal(cadre_client_next(f->client, -1), 0);
}

// Several

static void waiting_for_all_leaves_no_rest(void **state)
{
    struct fixture *f = *state;
    uint64_t ids[4];
    open_client(f);
    for (int i = 0; i < 4; i++)
        ids[i] = keep(f, "first");
    const uint64_t given[] = {ids[2], ids[0], ids[3], ids[1]};
    memcpy(ids, given, sizeof ids);
    assert_int_equal(wait_for_some(f, ids, 4, 4, -1), 4);
    assert_memory_equal(ids, given, sizeof ids); // in the order in which they were given
}

static void ready_ones_go_first_and_both_parts_keep_their_order(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t m1 = keep(f, "mute"), a = keep(f, "a"), m2 = keep(f, "mute"), b = keep(f, "b"), m3 = keep(f, "mute");
    uint64_t ids[] = {m3, b, m1, a, m2};
    const uint64_t expected[] = {b, a, m3, m1, m2};
    assert_int_equal(wait_for_some(f, ids, 5, 2, PATIENCE_MS), 2);
    assert_memory_equal(ids, expected, sizeof ids);
}

static void no_more_are_ready_than_were_asked_for(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t a = keep(f, "a"), m = keep(f, "mute"), b = keep(f, "b"), c = keep(f, "c");
    while (cadre_client_pending(f->client) > 1)
        cadre_client_wait(f->client, PATIENCE_MS);
    uint64_t ids[] = {m, c, b, a};
    const uint64_t expected[] = {c, m, b, a}; // b and a are answered, too, but one was asked for
    assert_int_equal(wait_for_some(f, ids, 4, 1, PATIENCE_MS), 1);
    assert_memory_equal(ids, expected, sizeof ids);
    assert_int_equal(wait_for_some(f, ids + 1, 3, 2, PATIENCE_MS), 2);
    assert_int_equal(ids[3], m);
}

static void time_that_is_over_leaves_a_rest(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t a = keep(f, "a");
    assert_string_equal(get(f, a), "\"a\""); // taken: it is answered all the same
    uint64_t ids[] = {keep(f, "mute"), a, keep(f, "mute")};
    assert_int_equal(wait_for_some(f, ids, 3, 3, 10), 1);
    assert_int_equal(ids[0], a);
    assert_int_equal(wait_for_some(f, ids, 3, 1, 0), 1);
}

static void calls_with_callbacks_can_be_waited_for(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    open_client(f);
    uint64_t ids[] = {start_method(f, "echo", &o)};
    assert_int_equal(wait_for_some(f, ids, 1, 1, -1), 1);
    assert_int_equal(o.n, 1);
}

static void says(struct fixture *f, const uint64_t *ids, size_t n, size_t num_returns, const char *text)
{
    size_t ready;
    uint64_t copy[4];
    memcpy(copy, ids, n * sizeof *ids);
    assert_int_equal(cadre_client_wait_for(f->client, copy, n, num_returns, -1, &ready, &f->error),
                     CADRE_CLIENT_INVALID);
    assert_non_null(strstr(f->error.message, text));
}

static void questions_that_make_no_sense_are_refused(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    uint64_t a = keep(f, "a"), b = keep(f, "b");
    const uint64_t twice[] = {a, b, a}, wrong[] = {a, 77}, zero[] = {0}, good[] = {a, b};
    says(f, twice, 3, 1, " is given twice");
    says(f, wrong, 2, 1, "77 is not the id of a call of this client");
    says(f, zero, 1, 1, "0 is not the id of a call of this client");
    says(f, good, 2, 0, "cannot wait for 0 of 2 calls");
    says(f, good, 2, 3, "cannot wait for 3 of 2 calls");
    says(f, good, 0, 0, "cannot wait for 0 of 0 calls");
}

// Inside of a callback nothing waits.

static void ask_for_another(void *ctx, const cadre_client_answer *a)
{
    struct outcome *o = ctx;
    size_t ready;
    uint64_t ids[] = {o->to_cancel};
    (void)a;
    o->n++;
    assert_int_equal(cadre_client_get(o->f->client, o->to_cancel, NULL, NULL), CADRE_CLIENT_INVALID);
    assert_int_equal(cadre_client_wait_for(o->f->client, ids, 1, 1, -1, &ready, NULL), CADRE_CLIENT_OK);
    assert_int_equal(ready, 0);
    assert_int_equal(cadre_client_next(o->f->client, -1), 0);
}

static void a_callback_does_not_wait(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {.f = f};
    cadre_client_request r = request_of("echo");
    open_client(f);
    o.to_cancel = keep(f, "mute");
    r.done = ask_for_another;
    r.ctx = &o;
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
    wait_for(f, &o);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_is_kept_until_it_is_taken),
        T(taking_an_answer_waits_for_it),
        T(an_error_is_kept_as_well),
        T(a_call_that_did_not_ask_for_it_has_nothing_to_take),
        T(a_callback_comes_as_well),
        T(kept_answers_count_for_the_limits),
        T(an_answer_that_is_forgotten_makes_room),
        T(closing_drops_what_is_kept),
        T(ranks_need_not_send_what_nobody_wants),
        T(answers_are_handed_out_as_they_come),
        T(what_was_taken_is_not_handed_out),
        T(waiting_for_all_leaves_no_rest),
        T(ready_ones_go_first_and_both_parts_keep_their_order),
        T(no_more_are_ready_than_were_asked_for),
        T(time_that_is_over_leaves_a_rest),
        T(calls_with_callbacks_can_be_waited_for),
        T(questions_that_make_no_sense_are_refused),
        T(a_callback_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
