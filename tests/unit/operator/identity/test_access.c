// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/access.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/identity/issuer.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define ANNA                                                                                                         \
    "{\"status\":{\"authenticated\":true,\"audiences\":[\"cadre\"],\"user\":{\"username\":\"anna\",\"uid\":\"u-7\"," \
    "\"groups\":[\"dev\",\"system:authenticated\"],\"extra\":{\"a/b\":[\"x\"]}}}}"
#define ALLOWED "{\"status\":{\"allowed\":true}}"
#define DENIED "{\"status\":{\"allowed\":false,\"reason\":\"RBAC: no\"}}"
#define STRANGER "{\"status\":{\"authenticated\":false,\"error\":\"[invalid bearer token]\"}}"

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct access *access;
    struct arena arena;
} t;

struct heard {
    int calls;
    struct err err;
    char user[64];
    int64_t expires_ms;
    bool code;
    void (*then)(struct heard *h);
    uint64_t other;
};

static void on_done(void *ctx, const struct client_user *who, int64_t expires_ms, const struct err *err)
{
    struct heard *h = ctx;
    h->calls++;
    h->err = *err;
    h->expires_ms = expires_ms;
    h->code = who && who->code;
    snprintf(h->user, sizeof h->user, "%s", who && who->name ? who->name : "");
    if (h->then)
        h->then(h);
}

// Tokens that begin with "odd" are unknown.
static int check(void *ctx, const char *token, struct err *err)
{
    assert_ptr_equal(ctx, &t);
    if (str_starts(token, "forged"))
        return err_set(err, ERR_UNAUTHORIZED, "the token is refused: its signature is wrong");
    return str_starts(token, "odd") ? err_set(err, ERR_NOT_FOUND, "it is not a JWT") : 0;
}

static void start(const struct access_options *options)
{
    access_free(t.access);
    t.access = access_new(t.loop, t.client, options);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    start(&(struct access_options){.audience = "cadre", .allowed_ms = 60000, .denied_ms = 60000});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    access_free(t.access);
    stub_client_free(t.client);
    loop_free(t.loop);
    arena_done(&t.arena);
    return 0;
}

static uint64_t ask(const char *token, const char *ns, struct heard *h)
{
    return access_ask(t.access, token, ns, on_done, h);
}

static void answer(enum kind kind, const char *body)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.verb, VERB_CREATE);
    assert_int_equal(call->request.kind, kind);
    stub_answer(call, 201, body);
}

// The rights to call, and to send code.
static void allow(void)
{
    answer(KIND_TOKEN_REVIEW, ANNA);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
}

// Returns the right in the present review.
static void answer_right(const char *verb_and_what, const char *body)
{
    assert_non_null(strstr(stub_next(t.client)->request.body, verb_and_what));
    answer(KIND_SUBJECT_ACCESS_REVIEW, body);
}

#define TO_CALL "\"verb\":\"create\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"subresource\":\"call\"}"
#define TO_SEND_CODE \
    "\"verb\":\"create\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"subresource\":\"code\"}"
#define TO_MAKE_GROUPS "\"verb\":\"create\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\"}"

static void code_takes_a_right_of_its_own_or_that_to_make_groups(void **state)
{
    static const struct {
        const char *to_send, *to_make; // NULL = there is no such review
        bool code;
    } cases[] = {{ALLOWED, NULL, true}, {DENIED, ALLOWED, true}, {DENIED, DENIED, false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct heard h = {0}, again = {0};
        const char *token = arena_printf(&t.arena, "token-%zu", i);
        ask(token, "ml", &h);
        answer(KIND_TOKEN_REVIEW, ANNA);
        answer_right(TO_CALL, ALLOWED);
        answer_right(TO_SEND_CODE, cases[i].to_send);
        assert_int_equal(h.calls, cases[i].to_make ? 0 : 1);
        if (cases[i].to_make)
            answer_right(TO_MAKE_GROUPS, cases[i].to_make);
        assert_int_equal(h.err.code, 0);
        assert_int_equal(h.code, cases[i].code);
        assert_int_equal(ask(token, "ml", &again), 0);
        assert_int_equal(again.code, cases[i].code);
    }
}

static void without_an_answer_about_code_there_is_none(void **state)
{
    (void)state;
    struct heard h = {0};
    ask("token", "ml", &h);
    answer(KIND_TOKEN_REVIEW, ANNA);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, "{}");
    assert_int_equal(h.err.code, ERR_UNAVAILABLE);
    assert_false(h.code);
}

static void the_token_is_reviewed_and_then_its_users_right(void **state)
{
    (void)state;
    struct heard h = {0};
    assert_true(ask("tok\"en", "ml", &h) != 0);
    assert_string_equal(stub_next(t.client)->request.body,
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":"
                        "\"tok\\\"en\",\"audiences\":[\"cadre\"]}}");
    answer(KIND_TOKEN_REVIEW, ANNA);
    assert_string_equal(
        stub_next(t.client)->request.body,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{\"user\":\"anna\","
        "\"uid\":\"u-7\",\"groups\":[\"dev\",\"system:authenticated\"],\"extra\":{\"a/b\":[\"x\"]},"
        "\"resourceAttributes\":{\"namespace\":\"ml\",\"verb\":\"create\",\"group\":\"cadre.dev\",\"resource\":"
        "\"workergroups\",\"subresource\":\"call\"}}}");
    assert_int_equal(h.calls, 0);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.err.code, 0);
    assert_string_equal(h.user, "anna");
    assert_int_equal(h.expires_ms, 0); // no JWT, so the end is not known
}

static const char *jwt(int64_t expires_s)
{
    struct issuer_key k = issuer_key_new("k", "ES256");
    const char *token = issuer_token(&k, "\"cadre\"", expires_s, &t.arena);
    EVP_PKEY_free(k.key);
    return token;
}

static void the_session_ends_with_the_token(void **state)
{
    (void)state;
    struct heard h = {0};
    ask(jwt(4000000000), "ml", &h);
    allow();
    assert_int_equal(h.expires_ms, 4000000000000);
}

static void an_answer_is_kept_for_a_while(void **state)
{
    (void)state;
    struct heard h = {0}, again = {0};
    ask("token", "ml", &h);
    allow();
    assert_int_equal(ask("token", "ml", &again), 0);
    assert_int_equal(again.calls, 1);
    assert_int_equal(again.err.code, 0);
    assert_string_equal(again.user, "anna");
    assert_true(stub_quiet(t.client));
}

static void a_refusal_is_kept_too(void **state)
{
    (void)state;
    struct heard h = {0}, again = {0};
    ask("token", "ml", &h);
    answer(KIND_TOKEN_REVIEW, STRANGER);
    assert_int_equal(ask("token", "ml", &again), 0);
    assert_int_equal(again.err.code, ERR_UNAUTHORIZED);
    assert_string_equal(again.err.msg, h.err.msg);
}

static void no_answer_outlives_its_time(void **state)
{
    (void)state;
    start(&(struct access_options){.audience = "cadre", .allowed_ms = 1, .denied_ms = 1});
    struct heard h = {0}, again = {0};
    ask("token", "ml", &h);
    allow();
    int64_t start_ms = loop_now_ms(t.loop);
    while (loop_now_ms(t.loop) < start_ms + 2)
        loop_run_once(t.loop, 1);
    assert_true(ask("token", "ml", &again) != 0);
    answer(KIND_TOKEN_REVIEW, STRANGER);
    assert_int_equal(again.err.code, ERR_UNAUTHORIZED);
}

static void no_answer_outlives_its_token(void **state)
{
    (void)state;
    struct heard h = {0}, again = {0};
    const char *token = jwt(1); // the clock of the API server may differ
    ask(token, "ml", &h);
    allow();
    assert_int_equal(h.err.code, 0);
    assert_true(ask(token, "ml", &again) != 0);
    allow();
}

static void another_namespace_or_token_is_another_question(void **state)
{
    (void)state;
    struct heard h[3] = {0};
    ask("token", "ml", &h[0]);
    ask("token", "prod", &h[1]);
    ask("token2", "ml", &h[2]);
    assert_int_equal(stub_waiting(t.client), 3);
    for (int i = 0; i < 3; i++)
        answer(KIND_TOKEN_REVIEW, ANNA);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, DENIED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    assert_int_equal(h[0].err.code, 0);
    assert_int_equal(h[1].err.code, ERR_FORBIDDEN);
    assert_int_equal(h[2].err.code, 0);
}

static void the_same_question_is_asked_once(void **state)
{
    (void)state;
    struct heard h[3] = {0};
    for (int i = 0; i < 3; i++)
        ask("token", "ml", &h[i]);
    assert_int_equal(stub_waiting(t.client), 1);
    allow();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(h[i].calls, 1);
        assert_int_equal(h[i].err.code, 0);
    }
    assert_true(stub_quiet(t.client));
}

static void who_goes_away_is_not_called(void **state)
{
    (void)state;
    struct heard gone = {0}, stays = {0};
    uint64_t id = ask("token", "ml", &gone);
    ask("token", "ml", &stays);
    access_cancel(t.access, id);
    access_cancel(t.access, id);
    allow();
    assert_int_equal(gone.calls, 0);
    assert_int_equal(stays.calls, 1);
}

static void a_question_that_nobody_waits_for_is_dropped(void **state)
{
    (void)state;
    struct heard h = {0}, next = {0};
    access_cancel(t.access, ask("token", "ml", &h));
    assert_true(stub_quiet(t.client));
    ask("token", "ml", &next);
    allow();
    assert_int_equal(h.calls, 0);
    assert_int_equal(next.calls, 1);
}

static void refusals_say_what_to_do(void **state)
{
    (void)state;
    struct heard h = {0};
    ask("token", "ml", &h);
    answer(KIND_TOKEN_REVIEW, STRANGER);
    assert_int_equal(h.err.code, ERR_UNAUTHORIZED);
    assert_string_equal(h.err.msg, "the token is not valid for audience cadre: make one with `kubectl create token "
                                   "NAME --audience=cadre` (the API server says: [invalid bearer token])");
    ask("token", "prod", &h);
    answer(KIND_TOKEN_REVIEW, ANNA);
    answer(KIND_SUBJECT_ACCESS_REVIEW, DENIED);
    assert_int_equal(h.err.code, ERR_FORBIDDEN);
    assert_string_equal(h.err.msg,
                        "user anna may not call workers in namespace prod: it needs create on workergroups/call "
                        "(group cadre.dev); bind the chart's ClusterRole that ends in -call to it there (the API "
                        "server says: RBAC: no)");
}

static void only_a_clear_yes_is_one(void **state)
{
    (void)state;
    const char *tokens[] = {
        "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"anna\"}}}",
        "{\"status\":{\"authenticated\":true,\"audiences\":[\"https://k\"],\"user\":{\"username\":\"anna\"}}}",
        "{\"status\":{\"authenticated\":true,\"audiences\":\"cadre\",\"user\":{\"username\":\"anna\"}}}",
        "{\"status\":{\"authenticated\":\"true\",\"audiences\":[\"cadre\"],\"user\":{\"username\":\"anna\"}}}",
        "{\"status\":{\"authenticated\":true,\"audiences\":[\"cadre\"],\"user\":{\"username\":\"\"}}}",
        "{\"status\":{\"authenticated\":true,\"audiences\":[\"cadre\"]}}",
        "{\"status\":{}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        struct heard h = {0};
        ask(arena_printf(&t.arena, "token-%zu", i), "ml", &h);
        answer(KIND_TOKEN_REVIEW, tokens[i]);
        assert_int_equal(h.err.code, ERR_UNAUTHORIZED);
    }
    const char *rights[] = {"{\"status\":{}}", "{\"status\":{\"allowed\":1}}",
                            "{\"status\":{\"allowed\":true,\"denied\":true}}",
                            "{\"status\":{\"allowed\":false,\"evaluationError\":\"webhook down\"}}"};
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        struct heard h = {0};
        ask(arena_printf(&t.arena, "right-%zu", i), "ml", &h);
        answer(KIND_TOKEN_REVIEW, ANNA);
        answer(KIND_SUBJECT_ACCESS_REVIEW, rights[i]);
        assert_int_equal(h.err.code, ERR_FORBIDDEN);
    }
}

static void an_answer_without_sense_is_no_refusal(void **state)
{
    (void)state;
    const char *bodies[] = {"", "x", "[]", "{}", "{\"status\":null}", "{\"status\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct heard h = {0};
        ask("token", "ml", &h);
        answer(KIND_TOKEN_REVIEW, bodies[i]);
        assert_int_equal(h.err.code, ERR_UNAVAILABLE);
        ask("token", "ml", &h);
        answer(KIND_TOKEN_REVIEW, ANNA);
        answer(KIND_SUBJECT_ACCESS_REVIEW, bodies[i]);
        assert_int_equal(h.err.code, ERR_UNAVAILABLE);
    }
}

static void an_api_server_in_trouble_is_asked_twice(void **state)
{
    (void)state;
    struct heard h = {0};
    ask("token", "ml", &h);
    stub_fail(stub_next(t.client), ERR_IO, "connection reset");
    answer(KIND_TOKEN_REVIEW, ANNA);
    stub_fail(stub_next(t.client), ERR_TIMEOUT, "no answer");
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    assert_int_equal(h.err.code, 0);

    ask("token", "prod", &h);
    stub_fail(stub_next(t.client), ERR_IO, "connection reset");
    stub_fail(stub_next(t.client), ERR_IO, "connection reset");
    assert_int_equal(h.err.code, ERR_UNAVAILABLE);
    assert_string_equal(
        h.err.msg, "the operator cannot ask the API server now whether you may call workers here: connection reset");
    // The answer is not kept.
    ask("token", "prod", &h);
    allow();
    assert_int_equal(h.err.code, 0);
}

static void a_right_that_the_operator_lacks_is_not_the_clients_fault(void **state)
{
    (void)state;
    struct heard h = {0};
    ask("token", "ml", &h);
    stub_fail(stub_next(t.client), ERR_FORBIDDEN, "POST tokenreviews: forbidden");
    assert_int_equal(h.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(h.err.msg, "POST tokenreviews: forbidden (the operator's ClusterRole lacks it"));
}

static void memory_is_bounded(void **state)
{
    (void)state;
    start(&(struct access_options){
        .audience = "cadre", .check = check, .ctx = &t, .allowed_ms = 60000, .max_questions = 2, .max_waiters = 3});
    struct heard h[5] = {0};
    ask("t0", "ml", &h[0]);
    ask("t1", "ml", &h[1]);
    assert_int_equal(ask("t2", "ml", &h[2]), 0); // both are still in progress
    assert_int_equal(h[2].err.code, ERR_THROTTLED);
    ask("t1", "ml", &h[2]);
    assert_int_equal(ask("t1", "ml", &h[3]), 0);
    assert_int_equal(h[3].err.code, ERR_THROTTLED);
    answer(KIND_TOKEN_REVIEW, ANNA);
    answer(KIND_TOKEN_REVIEW, ANNA);
    for (int i = 0; i < 4; i++) // two rights for each of both
        answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    // The oldest answer is removed to make room.
    assert_true(ask("t4", "ml", &h[4]) != 0);
    assert_int_equal(ask("t1", "ml", &h[1]), 0);
    allow();
    assert_true(ask("t0", "ml", &h[0]) != 0);
    allow();
}

static void what_cannot_be_is_not_asked(void **state)
{
    (void)state;
    struct heard h = {0};
    char *huge = arena_alloc(&t.arena, 20000);
    memset(huge, 'a', 19999);
    assert_int_equal(ask("", "ml", &h), 0);
    assert_int_equal(h.err.code, ERR_UNAUTHORIZED);
    assert_int_equal(ask(huge, "ml", &h), 0);
    assert_int_equal(h.err.code, ERR_UNAUTHORIZED);
    assert_int_equal(ask("token", "", &h), 0);
    assert_int_equal(h.err.code, ERR_FORBIDDEN);
    assert_int_equal(ask("token", huge, &h), 0);
    assert_int_equal(h.err.code, ERR_FORBIDDEN);
    assert_true(stub_quiet(t.client));
}

static void what_can_be_told_is_not_asked(void **state)
{
    (void)state;
    struct heard h = {0};
    start(&(struct access_options){.audience = "cadre", .check = check, .ctx = &t});
    assert_int_equal(ask("forged", "ml", &h), 0);
    assert_int_equal(h.err.code, ERR_UNAUTHORIZED);
    assert_string_equal(h.err.msg, "the token is refused: its signature is wrong: make one with `kubectl create token "
                                   "NAME --audience=cadre`");
    assert_true(stub_quiet(t.client));
}

// Peers with invented tokens wait for each other. Peers with tokens of the cluster do not wait for them.
static void tokens_that_may_be_anything_stand_in_line(void **state)
{
    (void)state;
    struct heard h[5] = {0}, good = {0};
    start(&(struct access_options){
        .audience = "cadre", .check = check, .ctx = &t, .denied_ms = 60000, .max_questions = 8, .max_doubtful = 2});
    ask("odd 0", "ml", &h[0]);
    ask("odd 1", "ml", &h[1]);
    uint64_t in_line = ask("odd 2", "ml", &h[2]);
    ask("odd 3", "ml", &h[3]);
    assert_int_equal(ask("odd 4", "ml", &h[4]), 0); // half of the questions
    assert_int_equal(h[4].err.code, ERR_THROTTLED);
    assert_int_equal(stub_waiting(t.client), 2);
    ask("token", "ml", &good);
    assert_int_equal(stub_waiting(t.client), 3);
    access_cancel(t.access, in_line);
    answer(KIND_TOKEN_REVIEW, STRANGER);
    assert_int_equal(h[0].err.code, ERR_UNAUTHORIZED);
    assert_int_equal(stub_waiting(t.client), 3); // "odd 3" follows it
    answer(KIND_TOKEN_REVIEW, STRANGER);
    answer(KIND_TOKEN_REVIEW, ANNA); // for "token"
    answer(KIND_TOKEN_REVIEW, STRANGER);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    answer(KIND_SUBJECT_ACCESS_REVIEW, ALLOWED);
    assert_int_equal(good.calls, 1);
    assert_int_equal(good.err.code, 0);
    assert_int_equal(h[2].calls, 0);
    assert_int_equal(ask("odd 1", "ml", &h[4]), 0); // its refusal is kept
    assert_int_equal(h[4].err.code, ERR_UNAUTHORIZED);
    ask("odd 5", "ml", &h[2]);
    ask("odd 6", "ml", &h[2]);
    ask("odd 7", "ml", &h[2]);
    assert_int_equal(stub_waiting(t.client), 2); // "odd 7" is still in the line at the end
}

static void cancel_other(struct heard *h)
{
    access_cancel(t.access, h->other);
}

static void ask_again(struct heard *h)
{
    h->then = NULL;
    ask("token", "ml", h);
}

static void a_callback_may_cancel_and_ask(void **state)
{
    (void)state;
    struct heard first = {.then = cancel_other}, second = {0}, third = {.then = ask_again};
    ask("token", "ml", &first);
    first.other = ask("token", "ml", &second);
    ask("token", "ml", &third);
    allow();
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 0);
    assert_int_equal(third.calls, 2);

    struct heard failed = {.then = ask_again};
    start(&(struct access_options){.audience = "cadre"});
    ask("token", "ml", &failed);
    answer(KIND_TOKEN_REVIEW, "no sense");
    assert_int_equal(failed.calls, 1); // asked again, because that was not an answer
    allow();
    assert_int_equal(failed.calls, 2);
    assert_int_equal(failed.err.code, 0);
}

static void it_can_go_while_it_asks(void **state)
{
    (void)state;
    struct heard h = {0};
    ask("token", "ml", &h);
    ask("token2", "ml", &h);
    answer(KIND_TOKEN_REVIEW, ANNA);
    access_free(TAKE_PTR(t.access));
    assert_true(stub_quiet(t.client));
    assert_int_equal(h.calls, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_token_is_reviewed_and_then_its_users_right),
        TEST(code_takes_a_right_of_its_own_or_that_to_make_groups),
        TEST(without_an_answer_about_code_there_is_none),
        TEST(the_session_ends_with_the_token),
        TEST(an_answer_is_kept_for_a_while),
        TEST(a_refusal_is_kept_too),
        TEST(no_answer_outlives_its_time),
        TEST(no_answer_outlives_its_token),
        TEST(another_namespace_or_token_is_another_question),
        TEST(the_same_question_is_asked_once),
        TEST(who_goes_away_is_not_called),
        TEST(a_question_that_nobody_waits_for_is_dropped),
        TEST(refusals_say_what_to_do),
        TEST(only_a_clear_yes_is_one),
        TEST(an_answer_without_sense_is_no_refusal),
        TEST(an_api_server_in_trouble_is_asked_twice),
        TEST(a_right_that_the_operator_lacks_is_not_the_clients_fault),
        TEST(memory_is_bounded),
        TEST(what_cannot_be_is_not_asked),
        TEST(what_can_be_told_is_not_asked),
        TEST(tokens_that_may_be_anything_stand_in_line),
        TEST(a_callback_may_cancel_and_ask),
        TEST(it_can_go_while_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
