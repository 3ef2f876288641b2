// SPDX-License-Identifier: Apache-2.0
// Answers that tell the client to wait.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "tests/unit/support/kube_fixture.h"
#include "tests/unit/support/text_ends.h"

static struct kube_fixture *f;
static struct answer many[3], *const a = many;

static int setup(void **state)
{
    (void)state;
    f = fixture_new(false);
    many[0] = many[1] = many[2] = ANSWER_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_free(f);
    for (int i = 0; i < 3; i++)
        answer_done(&many[i]);
    return 0;
}

static void rule(struct fakeapi_rule r)
{
    fakeapi_rule(f->api, &r);
}

static void a_429_is_tried_again_after_retry_after(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.method = "GET", .times = 1, .status = 429, .headers = "Retry-After: 1\r\n"});
    rule((struct fakeapi_rule){.method = "POST", .times = 1, .status = 503}); // 1 s is the default
    rule((struct fakeapi_rule){.body = "{}"});
    send_get(f, "a", 0, a);
    send_create(f, "{}", &many[1]);
    assert_true(answer_wait(f, a) && answer_wait(f, &many[1]));
    assert_int_equal(a->err.code, 0);
    assert_int_equal(many[1].err.code, 0);
    assert_int_equal(fakeapi_count(f->api), 4);
}

// Returns the position of the n-th such request among all requests, from 0.
static int nth_of(const char *name, int n)
{
    for (int i = 0; i < fakeapi_count(f->api); i++)
        if (text_ends(fakeapi_at(f->api, i)->target, name) && n-- == 0)
            return i;
    fail_msg("%s was not asked for so often", name);
    return -1;
}

// A request waits again while another one waits again, too. The first one does so after all three were sent, even on a
// slow machine.
static void what_comes_back_after_retry_after_keeps_its_order(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.target = "pods/a", .times = 1, .status = 429, .headers = "Retry-After: 3\r\n"});
    rule((struct fakeapi_rule){.target = "pods/b", .times = 1, .status = 429, .headers = "Retry-After: 3\r\n"});
    rule((struct fakeapi_rule){.target = "pods/c", .times = 1, .status = 429, .headers = "Retry-After: 4\r\n"});
    rule((struct fakeapi_rule){.target = "pods/a", .body = "{}", .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.body = "{}"});
    const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        send_get(f, names[i], 0, &many[i]);
    assert_true(fixture_wait_count(f, 4)); // one was sent again, and is not answered yet
    for (int64_t end = loop_now_ms(f->loop) + 2100; loop_now_ms(f->loop) < end;)
        fixture_turn(f, 1);
    fakeapi_end(f->api, "pods/a", FAKEAPI_KEEP);
    for (int i = 0; i < 3; i++)
        assert_true(answer_wait(f, &many[i]));
    assert_int_equal(fakeapi_count(f->api), 6);
    for (int n = 0; n < 2; n++) {
        assert_true(nth_of("pods/a", n) < nth_of("pods/b", n));
        assert_true(nth_of("pods/b", n) < nth_of("pods/c", n));
    }
}

static void a_429_that_does_not_end_is_given_up_after_five_retries(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.status = 429, .headers = "Retry-After: 1\r\n", .body = "{\"message\":\"slow down\"}"});
    send_get(f, "a", 0, a);
    assert_true(answer_wait(f, a));
    assert_message(a, ERR_THROTTLED, "slow down");
    assert_int_equal(a->err.retry_after_ms, 1000);
    assert_int_equal(fakeapi_count(f->api), 6);
}

static void a_retry_that_would_miss_the_deadline_is_not_waited_for(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.status = 429, .headers = "Retry-After: 120\r\n"});
    send_get(f, "a", 60 * 1000, a);
    assert_true(answer_wait(f, a));
    assert_message(a, ERR_THROTTLED, "GET pods ml/a: ");
    assert_int_equal(a->err.retry_after_ms, 120 * 1000);
    assert_int_equal(fakeapi_count(f->api), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_429_is_tried_again_after_retry_after),
        TEST(what_comes_back_after_retry_after_keeps_its_order),
        TEST(a_429_that_does_not_end_is_given_up_after_five_retries),
        TEST(a_retry_that_would_miss_the_deadline_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
