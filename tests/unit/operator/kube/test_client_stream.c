// SPDX-License-Identifier: Apache-2.0
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/mem.h"
#include "tests/unit/support/kube_fixture.h"

#include <string.h>

static struct kube_fixture *f;
static struct answer a, b;

static int setup(void **state)
{
    (void)state;
    f = fixture_new(false);
    a = b = ANSWER_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_free(f);
    answer_done(&a);
    answer_done(&b);
    return 0;
}

static void rule(struct fakeapi_rule r)
{
    fakeapi_rule(f->api, &r);
}

static void wait_body(const char *want)
{
    for (int i = 0; i < 10000 && strcmp(buf_str(&a.body), want) != 0; i++)
        fixture_turn(f, 1);
    assert_string_equal(buf_str(&a.body), want);
}

static void bytes_are_handed_over_as_they_come(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.body = "{\"one\":1}\n", .ending = FAKEAPI_OPEN});
    send_watch(f, 0, &a);
    wait_body("{\"one\":1}\n");
    assert_int_equal(fakeapi_push(f->api, "watch=true", "{\"two\""), 1);
    wait_body("{\"one\":1}\n{\"two\"");
    fakeapi_push(f->api, NULL, ":2}\n");
    wait_body("{\"one\":1}\n{\"two\":2}\n");
    assert_int_equal(a.calls, 0);
    assert_int_equal(fakeapi_end(f->api, NULL, FAKEAPI_KEEP), 1);
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.err.code, 0); // ended properly
    assert_string_equal(fakeapi_at(f->api, 0)->target,
                        "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=1");
}

static void chunks_of_one_byte_change_nothing(void **state)
{
    (void)state;
    const char *line = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n";
    rule((struct fakeapi_rule){.body = line, .split = 1});
    send_watch(f, 0, &a);
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.err.code, 0);
    assert_string_equal(a.body.data, line);
    assert_int_equal(a.pieces, strlen(line));
}

static void a_stream_that_breaks_is_an_error_after_what_has_come(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.times = 1, .body = "{\"one\":1}\n{\"tw", .ending = FAKEAPI_DROP});
    rule((struct fakeapi_rule){.times = 1, .body = "{\"one\":1}\n{\"tw", .ending = FAKEAPI_OPEN});
    send_watch(f, 0, &a);
    assert_true(answer_wait(f, &a));
    assert_string_equal(a.body.data, "{\"one\":1}\n{\"tw");
    assert_message(&a, ERR_IO, "watch of pods: the connection to http://127.0.0.1:");
    send_watch(f, 0, &b);
    assert_true(fixture_wait_streams(f, 1));
    fakeapi_end(f->api, NULL, FAKEAPI_RESET);
    assert_true(answer_wait(f, &b));
    assert_message(&b, ERR_IO, "was lost");
}

static void a_refusal_is_an_error_and_no_data(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.status = 410,
                               .split = 3,
                               .body = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
                                       "\"message\":\"too old resource version: 1 (99)\"}"});
    send_watch(f, 0, &a);
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.pieces, 0);
    assert_int_equal(a.err.http_status, 410);
    assert_message(&a, ERR_GONE, "watch of pods: ");
    assert_message(&a, ERR_GONE, "too old resource version: 1 (99)");
}

static void a_refusal_with_retry_after_is_the_callers_to_wait_for(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.status = 429, .headers = "Retry-After: 7\r\n"});
    send_watch(f, 0, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_THROTTLED, "watch of pods");
    assert_int_equal(a.err.retry_after_ms, 7000);
    assert_int_equal(fakeapi_count(f->api), 1);
}

static void a_half_open_socket_is_given_up_after_its_idle_time(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.times = 1, .ending = FAKEAPI_SILENT});
    rule((struct fakeapi_rule){.times = 1, .body = "{}\n", .ending = FAKEAPI_OPEN});
    send_watch(f, 100, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_TIMEOUT, "watch of pods: http://127.0.0.1:");
    send_watch(f, 100, &b);
    assert_true(answer_wait(f, &b));
    assert_message(&b, ERR_TIMEOUT, "for 0.1 s");
    assert_string_equal(b.body.data, "{}\n");
}

static void every_byte_begins_the_idle_time_again(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.body = "slow but steady", .split = 1, .pause_ms = 100});
    send_watch(f, 1000, &a);
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.err.code, 0);
    assert_string_equal(a.body.data, "slow but steady");
}

static void streams_do_not_wait_for_requests_nor_share_their_connections(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.target = "watch", .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    static struct answer waiting; // the teardown calls it back
    waiting = ANSWER_INIT;
    send_get(f, "a", 0, &waiting);
    send_get(f, "b", 0, &waiting);
    send_watch(f, 0, &a);
    send_watch(f, 0, &b);
    assert_true(fixture_wait_streams(f, 2) && fixture_wait_count(f, 3));
    assert_int_equal(fakeapi_count(f->api), 3);
    assert_int_equal(fakeapi_connections(f->api), 3);
    assert_int_equal(kube_in_flight(f->client), 2);
}

static uint64_t self;

static void cancel_self(void *ctx, const char *bytes, size_t n)
{
    answer_stream.data(ctx, bytes, n);
    kube_cancel(f->client, self);
}

static void a_stream_may_be_canceled_from_its_own_data(void **state)
{
    (void)state;
    const struct kube_stream_ops ops = {cancel_self, answer_stream.end};
    const struct kube_request r = {.verb = VERB_WATCH, .kind = KIND_POD};
    rule((struct fakeapi_rule){.body = "0123456789", .split = 1, .ending = FAKEAPI_OPEN});
    self = kube_stream(fixture_client(f), &r, 0, &ops, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_CANCELED, "watch of pods");
    assert_int_equal(a.pieces, 1); // nothing comes after it
    fixture_turn(f, 10);
    assert_int_equal(a.calls, 1);
}

static void send_from_data(void *ctx, const char *bytes, size_t n)
{
    answer_stream.data(ctx, bytes, n);
    send_get(f, "a", 0, &b);
}

static void requests_may_be_sent_from_data(void **state)
{
    (void)state;
    const struct kube_stream_ops ops = {send_from_data, answer_stream.end};
    const struct kube_request r = {.verb = VERB_WATCH, .kind = KIND_POD};
    rule((struct fakeapi_rule){.target = "watch", .body = "{}\n", .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.body = "{}"});
    kube_stream(fixture_client(f), &r, 0, &ops, &a);
    assert_true(answer_wait(f, &b));
    assert_int_equal(b.err.code, 0);
}

static void a_list_is_a_stream_too_and_a_cut_one_is_no_success(void **state)
{
    (void)state;
    const struct kube_request r = {.verb = VERB_LIST, .kind = KIND_POD, .limit = 500};
    rule((struct fakeapi_rule){.times = 1, .body = "{\"items\":[", .ending = FAKEAPI_DROP});
    rule((struct fakeapi_rule){.body = "{\"items\":[]}"});
    kube_stream(fixture_client(f), &r, 0, &answer_stream, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_IO, "GET pods: ");
    kube_stream(f->client, &r, 0, &answer_stream, &b);
    assert_true(answer_wait(f, &b));
    assert_int_equal(b.err.code, 0);
    assert_string_equal(b.body.data, "{\"items\":[]}");
}

static void the_pages_of_a_list_share_a_connection(void **state)
{
    (void)state;
    const struct kube_request r = {.verb = VERB_LIST, .kind = KIND_POD};
    rule((struct fakeapi_rule){.body = "{\"items\":[]}"});
    kube_stream(fixture_client(f), &r, 0, &answer_stream, &a);
    assert_true(answer_wait(f, &a));
    kube_stream(f->client, &r, 0, &answer_stream, &b);
    assert_true(answer_wait(f, &b));
    assert_int_equal(fakeapi_connections(f->api), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_handed_over_as_they_come),
        TEST(chunks_of_one_byte_change_nothing),
        TEST(a_stream_that_breaks_is_an_error_after_what_has_come),
        TEST(a_refusal_is_an_error_and_no_data),
        TEST(a_refusal_with_retry_after_is_the_callers_to_wait_for),
        TEST(a_half_open_socket_is_given_up_after_its_idle_time),
        TEST(every_byte_begins_the_idle_time_again),
        TEST(streams_do_not_wait_for_requests_nor_share_their_connections),
        TEST(a_stream_may_be_canceled_from_its_own_data),
        TEST(requests_may_be_sent_from_data),
        TEST(a_list_is_a_stream_too_and_a_cut_one_is_no_success),
        TEST(the_pages_of_a_list_share_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
