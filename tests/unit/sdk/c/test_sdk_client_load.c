// SPDX-License-Identifier: Apache-2.0
// Many calls at a time, long ones, and event loops that are not the client's.
#include "sdk/c/client/client.h"
#include "tests/unit/sdk/c/sdk_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { LONG_MS = 600 * 1000 };

struct fixture {
    struct sdk_proxy proxy;
    cadre_client_options options;
    cadre_client *client;
    cadre_client_error error;
    size_t answered, failed;
    size_t last_len;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    sdk_proxy_init(&f->proxy);
    cadre_client_options_init(&f->options);
    f->options.address = f->proxy.url;
    f->options.ns = "ml";
    f->options.group = "llama";
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    cadre_client_close(f->client);
    sdk_proxy_done(&f->proxy);
    free(f);
    return 0;
}

static void open_client(struct fixture *f)
{
    sdk_proxy_start(&f->proxy, NULL, NULL);
    assert_int_equal(cadre_client_open(&f->options, &f->client, &f->error), CADRE_CLIENT_OK);
}

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct fixture *f = ctx;
    f->answered++;
    f->failed += a->error != NULL;
    f->last_len = a->result.len;
    if (a->error)
        f->error = *a->error;
}

static cadre_client_code start_as(struct fixture *f, bool urgent, const char *method, const char *args, size_t len)
{
    cadre_client_request r;
    cadre_client_request_init(&r, method);
    r.args = (cadre_client_json){args, len};
    r.timeout_ms = LONG_MS;
    r.done = on_done;
    r.ctx = f;
    r.urgent = urgent;
    return cadre_client_start(f->client, &r, NULL, &f->error);
}

static cadre_client_code start(struct fixture *f, const char *method, const char *args, size_t len)
{
    return start_as(f, false, method, args, len);
}

static void start_many(struct fixture *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (start(f, "echo", "[10]", 4) != CADRE_CLIENT_OK)
            fail_msg("call %zu: %s", i, f->error.message);
}

static void wait_all(struct fixture *f)
{
    while (cadre_client_pending(f->client))
        cadre_client_wait(f->client, LONG_MS);
}

static void a_thousand_at_a_time(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    for (int round = 0; round < 5; round++) {
        start_many(f, 1000);
        assert_int_equal(cadre_client_pending(f->client), 1000);
        wait_all(f);
    }
    assert_int_equal(f->answered, 5000);
    assert_int_equal(f->failed, 0);
    assert_int_equal(f->client->calls.n_chunks, (1000 + 63) / 64); // places are used again
    assert_int_equal(quota_used(f->client->quota), 0);
}

static void no_more_than_max_calls(void **state)
{
    struct fixture *f = *state;
    f->options.max_calls = 10;
    open_client(f);
    start_many(f, 10);
    assert_int_equal(start(f, "echo", "[1]", 3), CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(f->error.message, "10 calls have no answer yet"));
    wait_all(f);
    start_many(f, 10);
    wait_all(f);
    assert_int_equal(f->answered, 20);
}

// The proxy refuses those that are over its own limit, so they wait here.
static void no_more_in_flight_than_the_proxy_allows(void **state)
{
    struct fixture *f = *state;
    f->proxy.welcome = "{\"maxCalls\":3}";
    open_client(f);
    cadre_client_call(f->client, &(cadre_client_request){sizeof(cadre_client_request), .method = "echo", .rank = -1},
                      NULL, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(start(f, "mute", "[]", 2), CADRE_CLIENT_OK);
    cadre_client_wait(f->client, 50);
    assert_int_equal(f->client->uplinks.now->n_sent, 3);
    const struct pending *first = CONTAINER_OF(f->client->uplinks.now->sent.next, struct pending, link);
    assert_int_equal(cadre_client_cancel(f->client, first->id), CADRE_CLIENT_OK);
    while (!f->answered)
        cadre_client_wait(f->client, LONG_MS);
    cadre_client_wait(f->client, 50);
    assert_int_equal(f->answered, 1);
    assert_int_equal(f->client->uplinks.now->n_sent, 3);
    assert_int_equal(cadre_client_pending(f->client), 4);
}

static cadre_client_code start_urgent(struct fixture *f, const char *method, const char *args, size_t len)
{
    return start_as(f, true, method, args, len);
}

static void an_urgent_call_waits_for_no_other(void **state)
{
    struct fixture *f = *state;
    f->proxy.welcome = "{\"maxCalls\":3}";
    f->options.max_calls = 5;
    open_client(f);
    for (int i = 0; i < 5; i++)
        assert_int_equal(start(f, "mute", "[]", 2), CADRE_CLIENT_OK);
    while (f->client->uplinks.now->n_sent < 3)
        cadre_client_wait(f->client, 50);
    assert_int_equal(start(f, "echo", "[1]", 3), CADRE_CLIENT_LIMIT);
    size_t left = quota_left(f->client->quota);
    assert_true(quota_charge(f->client->quota, left));
    f->client->turned_ms = 0; // the socket must be read first, so it is queued
    assert_int_equal(start_urgent(f, "echo", "[1]", 3), CADRE_CLIENT_OK);
    quota_refund(f->client->quota, left);
    assert_int_equal(cadre_client_pending(f->client), 5);
    while (!f->answered)
        cadre_client_wait(f->client, LONG_MS);
    assert_int_equal(start_urgent(f, "echo", "[1]", 3), CADRE_CLIENT_OK);
    while (f->answered < 2)
        cadre_client_wait(f->client, LONG_MS);
    assert_int_equal(f->failed, 0);
    assert_int_equal(cadre_client_pending(f->client), 5);
    assert_int_equal(f->client->uplinks.now->n_sent, 3);
}

static void urgent_calls_are_few_and_short(void **state)
{
    static char args[(16 << 10) + 1];
    struct fixture *f = *state;
    memset(args, ' ', sizeof args);
    args[0] = '[';
    args[sizeof args - 1] = ']';
    open_client(f);
    assert_int_equal(start_urgent(f, "mute", args, sizeof args), CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(f->error.message, "16385 bytes of arguments are too long for an urgent call"));
    for (int i = 0; i < 16; i++)
        assert_int_equal(start_urgent(f, "mute", "[]", 2), CADRE_CLIENT_OK);
    assert_int_equal(start_urgent(f, "mute", "[]", 2), CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(f->error.message, "16 urgent calls have no answer yet"));
    assert_int_equal(start(f, "mute", "[]", 2), CADRE_CLIENT_OK);
    cadre_client_close(f->client);
    f->client = NULL;
    assert_int_equal(f->answered, 17);
    assert_int_equal(f->error.code, CADRE_CLIENT_CANCELED);
}

static void every_call_of_a_full_client_is_found(void **state)
{
    (void)state;
    struct pendings t;
    pendings_init(&t);
    struct pending *first = pendings_take(&t);
    for (int i = 1; i < SETTINGS_CALLS_MAX; i++) {
        struct pending *p = pendings_take(&t);
        assert_ptr_equal(pendings_find(&t, p->id), p);
    }
    pendings_give(&t, first); // the entry of the next call is the longest unused
    struct pending *next = pendings_take(&t);
    assert_ptr_equal(pendings_find(&t, next->id), next);
    assert_ptr_equal(pendings_of_wire(&t, (uint32_t)next->id), next);
    pendings_done(&t);
}

static void long_arguments_and_long_results(void **state)
{
    struct fixture *f = *state;
    size_t len = (size_t)20 << 20;
    char *args = malloc(len);
    memset(args, '1', len);
    args[0] = '[';
    args[len - 1] = ']';
    open_client(f);
    assert_int_equal(start(f, "echo", args, len), CADRE_CLIENT_OK);
    free(args); // it was copied
    assert_int_equal(start(f, "big", "[30000000]", 10), CADRE_CLIENT_OK);
    wait_all(f);
    assert_int_equal(f->failed, 0);
    assert_true(f->last_len == len || f->last_len == 30000002);
    assert_int_equal(quota_used(f->client->quota), 0);
}

// Long arguments that are the program's again, and are overwritten, when the call is answered; the sanitizer looks on.
struct lent {
    char *args;
    size_t len;
    cadre_client_code code;
    bool over, same;
};

static void have_back(void *ctx, const cadre_client_answer *a)
{
    struct lent *l = ctx;
    l->over = true;
    l->code = a->error ? a->error->code : CADRE_CLIENT_OK;
    l->same = !a->error && a->result.len == l->len && memcmp(a->result.text, l->args, l->len) == 0;
    memset(l->args, '?', l->len);
    free(l->args);
    l->args = NULL;
}

static void lend_long(struct fixture *f, const char *method, struct lent *l, uint64_t *ret_id)
{
    cadre_client_request r;
    *l = (struct lent){.len = (size_t)20 << 20};
    l->args = malloc(l->len);
    memset(l->args, '1', l->len);
    l->args[0] = '[';
    l->args[l->len - 1] = ']';
    cadre_client_request_init(&r, method);
    r.args = (cadre_client_json){l->args, l->len};
    r.lend = 1;
    r.done = have_back;
    r.ctx = l;
    assert_int_equal(cadre_client_start(f->client, &r, ret_id, &f->error), CADRE_CLIENT_OK);
}

static void lent_arguments_are_not_copied(void **state)
{
    struct fixture *f = *state;
    struct lent l;
    open_client(f);
    lend_long(f, "echo", &l, NULL);
    assert_int_equal(quota_used(f->client->quota), 0);
    while (!l.over)
        cadre_client_wait(f->client, LONG_MS);
    assert_true(l.same);
}

static void lent_arguments_come_back_with_a_call_that_is_canceled_while_they_go_out(void **state)
{
    struct fixture *f = *state;
    struct lent l;
    uint64_t id;
    open_client(f);
    while (!cadre_client_connected(f->client))
        cadre_client_wait(f->client, LONG_MS), cadre_client_process(f->client);
    for (int turns = 0; turns < 6; turns++) {
        lend_long(f, "mute", &l, &id);
        for (int i = 0; i < turns; i++)
            cadre_client_process(f->client);
        cadre_client_cancel(f->client, id);
        while (!l.over)
            cadre_client_wait(f->client, LONG_MS);
        assert_int_equal(l.code, CADRE_CLIENT_CANCELED);
    }
    lend_long(f, "echo", &l, NULL); // the connection is as good as before
    while (!l.over)
        cadre_client_wait(f->client, LONG_MS);
    assert_true(l.same);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CANCEL"), 5); // something of it was out
    assert_int_equal(sdk_proxy_saw(&f->proxy, "mute"), 0);
}

static void lent_arguments_come_back_when_the_client_is_closed(void **state)
{
    struct fixture *f = *state;
    struct lent l;
    open_client(f);
    while (!cadre_client_connected(f->client))
        cadre_client_wait(f->client, LONG_MS), cadre_client_process(f->client);
    lend_long(f, "echo", &l, NULL);
    cadre_client_process(f->client);
    cadre_client_close(f->client);
    f->client = NULL;
    assert_true(l.over);
    assert_int_equal(l.code, CADRE_CLIENT_CANCELED);
}

static void a_long_result_may_be_passed_on(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r;
    cadre_client_json text = {"[30000000]", 10};
    open_client(f);
    cadre_client_request_init(&r, "big");
    r.args = text;
    assert_int_equal(cadre_client_call(f->client, &r, &text, &f->error), CADRE_CLIENT_OK);
    cadre_client_request_init(&r, "object.put"); // which takes any value
    r.args = text;
    assert_int_equal(cadre_client_call(f->client, &r, &text, &f->error), CADRE_CLIENT_OK);
    cadre_client_request_init(&r, "echo");
    char *args = malloc(1 << 20);
    memset(args, '1', 1 << 20);
    args[0] = '[';
    args[(1 << 20) - 1] = ']';
    r.args = (cadre_client_json){args, 1 << 20};
    assert_int_equal(cadre_client_call(f->client, &r, &text, &f->error), CADRE_CLIENT_OK);
    for (int i = 0; i < 3; i++) {
        r.args = text;
        assert_int_equal(cadre_client_call(f->client, &r, &text, &f->error), CADRE_CLIENT_OK);
        assert_int_equal(text.len, 1 << 20);
        assert_memory_equal(text.text, args, 1 << 20);
    }
    free(args);
}

static void arguments_over_the_limits_are_refused(void **state)
{
    struct fixture *f = *state;
    char args[5000] = "[";
    memset(args + 1, '1', sizeof args - 2);
    args[sizeof args - 1] = ']';
    f->options.max_body = 4000;
    assert_int_equal(cadre_client_open(&f->options, &f->client, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(start(f, "echo", args, sizeof args), CADRE_CLIENT_LIMIT);
    assert_string_equal(f->error.message, "echo(): 5000 bytes of arguments; at most 4000");
    cadre_client_close(f->client);
    f->options.max_body = 0;
    f->options.max_bytes = 8000; // two of them do not fit while there is no connection
    assert_int_equal(cadre_client_open(&f->options, &f->client, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(start(f, "echo", args, sizeof args), CADRE_CLIENT_OK);
    assert_int_equal(start(f, "echo", args, sizeof args), CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(f->error.message, "bytes are waiting already"));
    assert_int_equal(cadre_client_pending(f->client), 1);
}

static void a_result_that_is_too_long_fails_its_call(void **state)
{
    struct fixture *f = *state;
    f->options.max_body = 1 << 20;
    open_client(f);
    assert_int_equal(start(f, "big", "[9000000]", 9), CADRE_CLIENT_OK);
    wait_all(f);
    assert_int_equal(f->error.code, CADRE_CLIENT_LIMIT);
    assert_int_equal(f->error.may_have_run, 1);
    assert_non_null(strstr(f->error.message, "big() ran, but its result is not taken"));
    start_many(f, 1);
    wait_all(f);
    assert_int_equal(f->failed, 1);
}

// Whatever happened to the connection while nobody looked is noticed before a call is sent.
static void a_program_that_did_something_else_meanwhile(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    start_many(f, 1);
    wait_all(f);
    sdk_proxy_stop(&f->proxy);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    f->client->turned_ms -= 3600 * 1000;
    start_many(f, 3);
    wait_all(f);
    assert_int_equal(f->failed, 0);
}

static void in_the_event_loop_of_another(void **state)
{
    struct fixture *f = *state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    open_client(f);
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, cadre_client_fd(f->client), &event), 0);
    for (int round = 0; round < 20; round++) {
        start_many(f, 50);
        while (cadre_client_pending(f->client)) {
            epoll_wait(epoll, &event, 1, cadre_client_timeout_ms(f->client));
            cadre_client_process(f->client);
        }
    }
    assert_int_equal(f->answered, 1000);
    assert_int_equal(f->failed, 0);
    close(epoll);
}

static void start_another(void *ctx, const cadre_client_answer *a)
{
    struct fixture *f = ctx;
    cadre_client_request r;
    cadre_client_json none;
    f->failed += a->error != NULL;
    if (++f->answered == 100)
        return;
    cadre_client_request_init(&r, "echo");
    r.done = start_another;
    r.ctx = f;
    if (cadre_client_call(f->client, &r, &none, &f->error) != CADRE_CLIENT_INVALID || // would never come back
        cadre_client_start(f->client, &r, NULL, &f->error) != CADRE_CLIENT_OK)
        f->failed++;
}

static void callbacks_start_calls_and_cannot_block(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r;
    open_client(f);
    cadre_client_request_init(&r, "echo");
    r.done = start_another;
    r.ctx = f;
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
    wait_all(f);
    assert_int_equal(f->answered, 100);
    assert_int_equal(f->failed, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_thousand_at_a_time),
        T(no_more_than_max_calls),
        T(no_more_in_flight_than_the_proxy_allows),
        T(an_urgent_call_waits_for_no_other),
        T(urgent_calls_are_few_and_short),
        T(every_call_of_a_full_client_is_found),
        T(long_arguments_and_long_results),
        T(lent_arguments_are_not_copied),
        T(lent_arguments_come_back_with_a_call_that_is_canceled_while_they_go_out),
        T(lent_arguments_come_back_when_the_client_is_closed),
        T(a_long_result_may_be_passed_on),
        T(arguments_over_the_limits_are_refused),
        T(a_result_that_is_too_long_fails_its_call),
        T(a_program_that_did_something_else_meanwhile),
        T(in_the_event_loop_of_another),
        T(callbacks_start_calls_and_cannot_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
