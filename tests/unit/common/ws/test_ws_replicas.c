// SPDX-License-Identifier: Apache-2.0
// The addresses of a name that changes: a resolver of ours answers.
#include "common/base/loop_resolve.h"
#include "common/ws/ws_replicas.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 30 };

struct link {
    char address[96];
    bool up;
};

static struct {
    struct loop *loop;
    const char *name; // what it resolves to: addresses with a blank between them, "" = it does not
    int looks, lookups_open;
    loop_resolve_fn fn;
    void *ctx;
    char host[64], port[16];
    struct loop_timer *answer;
    struct buf trace;
    int refuse; // so many times to make a link
} world;

// The resolver

static void answer(void *ctx)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list = NULL;
    struct err err = ERR_INIT;
    char name[256];
    (void)ctx;
    snprintf(name, sizeof name, "%s", world.name);
    for (char *word = name, *next; *word; word = next) { // the last word becomes the first address
        struct addrinfo *one;
        next = word + strcspn(word, " ");
        if (*next)
            *next++ = '\0';
        assert_int_equal(getaddrinfo(word, world.port, &hints, &one), 0);
        one->ai_next = list;
        list = one;
    }
    world.lookups_open--;
    if (!list)
        err_set(&err, ERR_UNAVAILABLE, "%s has no address", world.host);
    world.fn(world.ctx, list, &err);
    for (struct addrinfo *one = list; one; one = list) {
        list = one->ai_next;
        one->ai_next = NULL;
        freeaddrinfo(one);
    }
}

struct loop_resolve *__wrap_loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                             void *ctx);
void __wrap_loop_resolve_cancel(struct loop_resolve *r);

struct loop_resolve *__wrap_loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                             void *ctx)
{
    (void)loop;
    assert_int_equal(world.lookups_open, 0); // one at a time
    world.looks++;
    world.lookups_open++;
    world.fn = fn;
    world.ctx = ctx;
    snprintf(world.host, sizeof world.host, "%s", host);
    snprintf(world.port, sizeof world.port, "%s", port);
    loop_timer_arm(world.answer, 0);
    return (struct loop_resolve *)&world;
}

void __wrap_loop_resolve_cancel(struct loop_resolve *r)
{
    if (!r)
        return;
    world.lookups_open--;
    loop_timer_disarm(world.answer);
}

// The owner

static void *add(void *ctx, const char *address)
{
    (void)ctx;
    if (world.refuse > 0) {
        world.refuse--;
        return NULL;
    }
    struct link *l = xcalloc(1, sizeof *l);
    snprintf(l->address, sizeof l->address, "%s", address);
    buf_printf(&world.trace, "+%s ", address);
    return l;
}

static bool is_up(void *ctx, void *link)
{
    (void)ctx;
    return ((struct link *)link)->up;
}

static void remove_link(void *ctx, void *link)
{
    (void)ctx;
    buf_printf(&world.trace, "-%s ", ((struct link *)link)->address);
    free(link);
}

static void unresolved(void *ctx, const struct err *err)
{
    (void)ctx;
    buf_printf(&world.trace, "(%s) ", err->msg);
}

static struct ws_replicas *dial(const char *url, int64_t look_ms)
{
    struct err err = ERR_INIT;
    const struct ws_replicas_config config = {
        .url = url, .look_ms = look_ms, .add = add, .up = is_up, .remove = remove_link, .unresolved = unresolved};
    struct ws_replicas *r = ws_replicas_new(world.loop, &config, &err);
    assert_non_null(r);
    return r;
}

static void turn_until(bool (*done)(struct ws_replicas *r), struct ws_replicas *r)
{
    int64_t end = clock_mono_ms(&clock_system) + PATIENCE_MS;
    while (!done(r) && clock_mono_ms(&clock_system) < end)
        loop_run_once(world.loop, 10);
    if (!done(r))
        fail_msg("it did not happen; so far: %s", buf_str(&world.trace));
}

static int looks_wanted;

static bool looked(struct ws_replicas *r)
{
    (void)r;
    return world.looks >= looks_wanted && world.lookups_open == 0;
}

static void more_looks(struct ws_replicas *r, int n)
{
    looks_wanted = world.looks + n;
    turn_until(looked, r);
}

#define assert_trace(text)                                  \
    do {                                                    \
        assert_string_equal(buf_str(&world.trace), (text)); \
        buf_reset(&world.trace);                            \
    } while (0)

static int setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.loop = loop_new();
    world.answer = loop_timer_new(world.loop, answer, NULL);
    world.trace = BUF_INIT(64 * 1024);
    world.name = "";
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    loop_timer_free(world.answer);
    loop_free(world.loop);
    buf_done(&world.trace);
    return 0;
}

static void each_address_has_one_link(void **state)
{
    (void)state;
    world.name = "10.0.0.1 ::1 10.0.0.1";
    struct ws_replicas *r = dial("ws://operator.ns.svc:9443", LOOK_MS);
    more_looks(r, 1);
    assert_trace("+10.0.0.1:9443 +[::1]:9443 ");
    assert_string_equal(world.host, "operator.ns.svc");
    assert_string_equal(ws_replicas_host(r), "operator.ns.svc");
    assert_null(ws_replicas_tls(r));
    assert_int_equal(ws_replicas_count(r), 2);
    more_looks(r, 3);
    assert_trace("");
    ws_replicas_free(r);
    assert_trace("-[::1]:9443 -10.0.0.1:9443 ");
}

static void links_follow_the_name_but_one_that_is_up_stays(void **state)
{
    (void)state;
    world.name = "10.0.0.2 10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", LOOK_MS);
    more_looks(r, 1);
    struct link *first = ws_replicas_at(r, 0);
    first->up = true;
    world.name = "10.0.0.3";
    more_looks(r, 2);
    assert_trace("+10.0.0.1:1 +10.0.0.2:1 -10.0.0.2:1 +10.0.0.3:1 ");
    first->up = false;
    more_looks(r, 2);
    assert_trace("-10.0.0.1:1 ");
    ws_replicas_free(r);
}

static void a_name_without_an_address_takes_nothing_and_is_said_once(void **state)
{
    (void)state;
    struct ws_replicas *r = dial("ws://operator:1", 3600 * 1000);
    more_looks(r, 2); // soon, not in an hour
    assert_trace("(operator has no address) ");
    world.name = "10.0.0.1";
    more_looks(r, 1);
    assert_trace("+10.0.0.1:1 ");
    ws_replicas_free(r);
}

static void a_name_server_that_is_away_ends_no_link(void **state)
{
    (void)state;
    world.name = "10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", LOOK_MS);
    more_looks(r, 1);
    world.name = "";
    more_looks(r, 2);
    assert_trace("+10.0.0.1:1 (operator has no address) ");
    assert_int_equal(ws_replicas_count(r), 1);
    ws_replicas_free(r);
}

static void a_lost_link_is_a_reason_to_look(void **state)
{
    (void)state;
    world.name = "10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", 3600 * 1000);
    more_looks(r, 1);
    world.name = "10.0.0.2";
    ws_replicas_look_soon(r);
    ws_replicas_look_soon(r);
    more_looks(r, 1);
    assert_trace("+10.0.0.1:1 -10.0.0.1:1 +10.0.0.2:1 ");
    ws_replicas_free(r);
}

// The new replica of a rollout has a name some seconds after the old one has lost its own.
static void after_a_change_it_looks_again_before_long(void **state)
{
    (void)state;
    world.name = "10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", 3600 * 1000);
    more_looks(r, 1);
    world.name = "10.0.0.2 10.0.0.1";
    more_looks(r, 1);
    assert_trace("+10.0.0.1:1 +10.0.0.2:1 ");
    ws_replicas_free(r);
}

// It looks every second for at least half a minute, then every few seconds, until all are there again.
static void after_a_loss_it_looks_again_and_again(void **state)
{
    (void)state;
    int64_t hour = 3600 * 1000, wait = 30 * 1000;
    for (int64_t passed = 0; passed < WS_REPLICAS_BRISK_MS; passed += wait) {
        wait = ws_replicas_wait(passed ? wait : 0, passed, true, hour);
        assert_true(wait <= 1000);
    }
    for (int i = 0; i < 100; i++)
        wait = ws_replicas_wait(wait, WS_REPLICAS_BRISK_MS + i, true, hour);
    assert_int_equal(wait, WS_REPLICAS_FEW_MS);
    for (int i = 0; i < 100; i++)
        wait = ws_replicas_wait(wait, WS_REPLICAS_BRISK_MS + i, false, hour);
    assert_int_equal(wait, hour);
    assert_int_equal(ws_replicas_wait(0, 0, true, 30), 30);
}

static void a_replica_is_missed_that_has_lost_its_name(void **state)
{
    (void)state;
    world.name = "10.0.0.2 10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", 3600 * 1000);
    more_looks(r, 1);
    ((struct link *)ws_replicas_at(r, 0))->up = true;
    world.name = "10.0.0.1";
    more_looks(r, 4); // would take minutes where one link was enough
    assert_int_equal(ws_replicas_count(r), 1);
    world.name = "10.0.0.3 10.0.0.1";
    more_looks(r, 1);
    assert_int_equal(ws_replicas_count(r), 2);
    ws_replicas_free(r);
}

static void an_address_for_which_no_link_was_made_comes_again(void **state)
{
    (void)state;
    world.name = "10.0.0.1";
    world.refuse = 1;
    struct ws_replicas *r = dial("ws://operator:1", LOOK_MS);
    more_looks(r, 2);
    assert_trace("+10.0.0.1:1 ");
    ws_replicas_free(r);
}

static void it_stops_looking_when_told(void **state)
{
    (void)state;
    world.name = "10.0.0.1";
    struct ws_replicas *r = dial("ws://operator:1", LOOK_MS);
    more_looks(r, 1);
    ws_replicas_stop(r);
    ws_replicas_look_soon(r);
    assert_false(loop_run_once(world.loop, 0)); // nothing is left that could ever call back
    assert_int_equal(ws_replicas_count(r), 1);
    ws_replicas_free(r);
}

static void only_so_many_are_dialed(void **state)
{
    (void)state;
    world.name = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11 "
                 "10.0.0.12 10.0.0.13 10.0.0.14 10.0.0.15 10.0.0.16 10.0.0.17 10.0.0.18";
    struct ws_replicas *r = dial("ws://operator:1", LOOK_MS);
    more_looks(r, 2);
    assert_int_equal(ws_replicas_count(r), WS_REPLICAS_MAX);
    ws_replicas_free(r);
}

static void an_address_must_make_sense(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        "host:1",       "http://host:1", "ws://host",
                                        "ws://:1", "wss://host:0", "ws://h:x",      "ws://::1:80"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;
        const struct ws_replicas_config config = {.url = wrong[i]};
        assert_null(ws_replicas_new(world.loop, &config, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
    struct err err = ERR_INIT;
    const struct ws_replicas_config config = {.url = "wss://host:1", .ca_pem = "nonsense"};
    assert_null(ws_replicas_new(world.loop, &config, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void the_brackets_of_an_address_are_not_part_of_it(void **state)
{
    (void)state;
    world.name = "::1";
    struct ws_replicas *r = dial("ws://[::1]:7", LOOK_MS);
    more_looks(r, 1);
    assert_string_equal(world.host, "::1");
    assert_trace("+[::1]:7 ");
    ws_replicas_free(r);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_address_has_one_link),
        T(links_follow_the_name_but_one_that_is_up_stays),
        T(a_name_without_an_address_takes_nothing_and_is_said_once),
        T(a_name_server_that_is_away_ends_no_link),
        T(a_lost_link_is_a_reason_to_look),
        T(after_a_change_it_looks_again_before_long),
        T(after_a_loss_it_looks_again_and_again),
        T(a_replica_is_missed_that_has_lost_its_name),
        T(an_address_for_which_no_link_was_made_comes_again),
        T(it_stops_looking_when_told),
        T(only_so_many_are_dialed),
        T(an_address_must_make_sense),
        T(the_brackets_of_an_address_are_not_part_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
