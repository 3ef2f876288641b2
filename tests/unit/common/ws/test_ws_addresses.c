// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_addresses.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/unit/support/fake_names.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static struct loop *loop;
static struct ws_addresses *addresses;
static int told;
static struct err said;

static int setup(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    loop = loop_new();
    fake_names = (struct fake_names){.addresses = "10.0.0.1 10.0.0.2 10.0.0.3"};
    addresses = ws_addresses_new(loop, "operator:9443", &err);
    assert_non_null(addresses);
    told = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_addresses_free(addresses);
    loop_free(loop);
    return 0;
}

static void on_found(void *ctx, const struct err *err)
{
    (void)ctx;
    told++;
    said = *err;
}

static void find(void)
{
    int64_t end = clock_mono_ms(&clock_system) + PATIENCE_MS;
    told = 0;
    ws_addresses_find(addresses, on_found, NULL);
    while (!told && clock_mono_ms(&clock_system) < end)
        loop_run_once(loop, 10);
    assert_int_equal(told, 1);
}

static const char *list(void)
{
    static char text[512];
    struct buf out = BUF_INIT(sizeof text);
    for (size_t i = 0; i < ws_addresses_count(addresses); i++) {
        const struct ws_address *a = ws_addresses_at(addresses, i);
        char host[64];
        assert_int_equal(
            getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof host, NULL, 0, NI_NUMERICHOST), 0);
        buf_printf(&out, "%s%s", i ? " " : "", host);
    }
    snprintf(text, sizeof text, "%s", buf_str(&out));
    buf_done(&out);
    return text;
}

static void fail_first(void)
{
    struct ws_address first = *ws_addresses_at(addresses, 0);
    ws_addresses_failed(addresses, &first);
}

static void what_failed_last_comes_last(void **state)
{
    (void)state;
    find();
    assert_string_equal(list(), "10.0.0.1 10.0.0.2 10.0.0.3");
    fail_first();
    assert_string_equal(list(), "10.0.0.2 10.0.0.3 10.0.0.1");
    fail_first();
    assert_string_equal(list(), "10.0.0.3 10.0.0.1 10.0.0.2");
    find(); // and is remembered
    assert_string_equal(list(), "10.0.0.3 10.0.0.1 10.0.0.2");
}

static void a_new_address_comes_before_those_that_failed_and_one_that_is_gone_goes(void **state)
{
    (void)state;
    find();
    fail_first();
    fail_first();
    fake_names.addresses = "10.0.0.1 10.0.0.2 10.0.0.4";
    find();
    assert_string_equal(list(), "10.0.0.4 10.0.0.1 10.0.0.2");
}

static void an_address_that_is_named_twice_is_one(void **state)
{
    (void)state;
    fake_names.addresses = "10.0.0.1 ::1 10.0.0.1";
    find();
    assert_string_equal(list(), "10.0.0.1 ::1");
}

static void without_a_name_server_there_are_those_of_before(void **state)
{
    (void)state;
    find();
    fake_names.state = FAKE_NAMES_FAIL;
    find();
    assert_int_equal(said.code, 0);
    assert_int_equal(ws_addresses_count(addresses), 3);
}

static void one_that_is_silent_is_asked_once_and_not_waited_for(void **state)
{
    (void)state;
    find();
    fake_names.state = FAKE_NAMES_HANG;
    for (int i = 0; i < 5; i++)
        find();
    assert_int_equal(said.code, 0);
    assert_int_equal(fake_names.lookups, 2);
}

static void where_nothing_is_known_the_error_is_told(void **state)
{
    (void)state;
    fake_names.state = FAKE_NAMES_FAIL;
    find();
    assert_int_equal(said.code, ERR_UNAVAILABLE);
    assert_int_equal(ws_addresses_count(addresses), 0);
}

static void who_has_gone_is_not_told(void **state)
{
    (void)state;
    ws_addresses_find(addresses, on_found, NULL);
    ws_addresses_cancel(addresses);
    for (int i = 0; i < 5; i++)
        loop_run_once(loop, 0);
    assert_int_equal(told, 0);
    assert_int_equal(ws_addresses_count(addresses), 3); // for the next one
}

static void an_address_must_make_sense(void **state)
{
    static const char *const wrong[] = {"", "host", ":1", "host:0", "host:65536", "::1:80", "host:x"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;
        assert_null(ws_addresses_new(loop, wrong[i], &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void the_brackets_are_not_part_of_the_host(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    struct ws_addresses *a = ws_addresses_new(loop, "[::1]:80", &err);
    assert_string_equal(ws_addresses_host(a), "::1");
    ws_addresses_free(a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_failed_last_comes_last),
        T(a_new_address_comes_before_those_that_failed_and_one_that_is_gone_goes),
        T(an_address_that_is_named_twice_is_one),
        T(without_a_name_server_there_are_those_of_before),
        T(one_that_is_silent_is_asked_once_and_not_waited_for),
        T(where_nothing_is_known_the_error_is_told),
        T(who_has_gone_is_not_told),
        T(an_address_must_make_sense),
        T(the_brackets_are_not_part_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
