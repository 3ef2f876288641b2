// SPDX-License-Identifier: Apache-2.0
// Many sessions that all have something to say: how much of it is read in a turn of the loop, and of whom.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/ws/ws_fair_queue.h"
#include "common/ws/ws_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SESSIONS = 64, LEN = 1000, EACH = 17 }; // of each session more than it may say in a turn

#define TURN ((size_t)512 << 10)

static struct ws_fixture f;

static int setup(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_message = 1 << 20});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    f.quiet = true;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_fixture_stop(&f);
    return 0;
}

static unsigned count(const char *text)
{
    unsigned n = 0;
    for (const char *at = buf_str(&f.trace); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static int shake_hands(void)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                  "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n";
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    char answer[1024];
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
    ssize_t got = 0;
    WS_UNTIL(&f, got > 0 || (got = recv(fd, answer, sizeof answer, MSG_DONTWAIT)) > 0);
    return fd;
}

// All at once; the socket takes it.
static void say_texts(int fd, size_t len)
{
    static const uint8_t key[4] = {0};
    static const char payload[LEN + SESSIONS];
    char text[EACH * (FRAME_HEADER_MAX + sizeof payload)];
    size_t n = 0;
    for (int i = 0; i < EACH; i++) {
        n += frame_header_encode(text + n, true, FRAME_TEXT, len, key);
        memcpy(text + n, payload, len);
        n += len;
    }
    assert_int_equal(send(fd, text, n, MSG_DONTWAIT), n);
}

static void a_turn_reads_so_much_and_the_next_one_goes_on_with_the_others(void **state)
{
    (void)state;
    int fds[SESSIONS];
    char text[32];
    const struct ws_server_counters *counters = ws_server_counters(f.server);
    for (int i = 0; i < SESSIONS; i++)
        fds[i] = shake_hands();
    for (int i = 0; i < SESSIONS; i++)
        say_texts(fds[i], (size_t)(LEN + i));
    for (int turn = 0; turn < 2; turn++) {
        uint64_t before = counters->bytes_in;
        loop_run_once(f.loop, 100);
        assert_in_range(counters->bytes_in - before, TURN / 2, TURN + WS_WAVE);
    }
    for (int i = 0; i < SESSIONS; i++) { // all have been read
        snprintf(text, sizeof text, "message text %d\n", LEN + i);
        assert_true(count(text) > 0);
    }
    WS_UNTIL(&f, count("message text ") == SESSIONS * EACH);
    for (int i = 0; i < SESSIONS; i++)
        close(fds[i]);
}

static void a_session_of_another_owner_is_read_in_the_same_turn(void **state)
{
    (void)state;
    int fds[SESSIONS];
    char last[32];
    for (int i = 0; i < SESSIONS; i++) {
        fds[i] = shake_hands();
        ws_session_owner(f.session, i < SESSIONS - 1 ? "many" : "one", 1);
    }
    for (int i = 0; i < SESSIONS; i++)
        say_texts(fds[i], (size_t)(LEN + i));
    loop_run_once(f.loop, 100);
    snprintf(last, sizeof last, "message text %d\n", LEN + SESSIONS - 1);
    assert_true(count(last) > 0);
    assert_true(count("message text ") < SESSIONS * EACH);
    for (int i = 0; i < SESSIONS; i++)
        close(fds[i]);
}

// The owners' own order, without sockets

struct reader {
    struct list ready;
    struct ws_owner *owner;
};

// Who is next, as an index of readers; it is ready again at once.
static long next_of(struct ws_fair_queue *t, struct reader *readers, size_t bytes)
{
    struct reader *r = CONTAINER_OF(ws_fair_queue_next(t), struct reader, ready);
    ws_owner_ready(r->owner, &r->ready);
    ws_fair_queue_spend(t, bytes);
    return r - readers;
}

static void owners_are_read_in_turns_by_weight(void **state)
{
    (void)state;
    struct ws_fair_queue t;
    struct reader readers[101];
    unsigned times[ARRAY_LEN(readers)] = {0};
    ws_fair_queue_init(&t);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) { // 100 of one owner, then one of another one, who weighs three
        readers[i].owner = ws_fair_queue_owner(&t, i < 100 ? "many" : "one", i < 100 ? 1 : 3);
        list_init(&readers[i].ready);
        ws_owner_ready(readers[i].owner, &readers[i].ready);
    }
    for (int i = 0; i < 400; i++)
        times[next_of(&t, readers, WS_QUANTUM)]++;
    assert_int_equal(times[100], 300);
    for (int i = 0; i < 100; i++)
        assert_int_equal(times[i], 1);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        ws_owner_leave(readers[i].owner, &readers[i].ready);
        ws_owner_unref(readers[i].owner);
    }
    assert_null(ws_fair_queue_next(&t));
    ws_fair_queue_done(&t);
}

static void an_owner_whose_sessions_have_left_is_not_next(void **state)
{
    (void)state;
    struct ws_fair_queue t;
    struct list a, b;
    ws_fair_queue_init(&t);
    struct ws_owner *one = ws_fair_queue_owner(&t, "one", 1), *other = ws_fair_queue_owner(&t, "other", 1);
    list_init(&a);
    list_init(&b);
    ws_owner_ready(one, &a);
    ws_owner_ready(one, &a); // no change
    assert_ptr_equal(ws_fair_queue_next(&t), &a);
    ws_owner_ready(other, &b); // before what was read of the other one is known
    ws_fair_queue_spend(&t, 1);
    assert_int_equal(t.n_ready, 1);
    assert_ptr_equal(ws_fair_queue_next(&t), &b);
    ws_fair_queue_spend(&t, 1);
    ws_owner_unref(one);
    ws_owner_unref(other);
    ws_fair_queue_done(&t);
}

static void what_is_read_counts_for_the_owner_whose_turn_it_was(void **state)
{
    (void)state;
    struct ws_fair_queue t;
    struct list a, b, c;
    ws_fair_queue_init(&t);
    struct ws_owner *stranger = ws_fair_queue_owner(&t, "", 1), *other = ws_fair_queue_owner(&t, "other", 1);
    list_init(&a);
    list_init(&b);
    list_init(&c);
    ws_owner_ready(stranger, &a);
    ws_owner_ready(stranger, &b);
    ws_owner_ready(other, &c);
    assert_ptr_equal(ws_fair_queue_next(&t), &a);
    struct ws_owner *known = ws_fair_queue_owner(&t, "known", 1); // what was read of a says whose it is
    ws_owner_ready(known, &a);
    ws_fair_queue_spend(&t, WS_QUANTUM);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(ws_fair_queue_next(&t), i == 0 ? &c : i == 1 ? &a : &b);
        ws_fair_queue_spend(&t, WS_QUANTUM);
    }
    ws_owner_unref(stranger);
    ws_owner_unref(known);
    ws_owner_unref(other);
    ws_fair_queue_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_reads_so_much_and_the_next_one_goes_on_with_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_of_another_owner_is_read_in_the_same_turn, setup, teardown),
        cmocka_unit_test(owners_are_read_in_turns_by_weight),
        cmocka_unit_test(an_owner_whose_sessions_have_left_is_not_next),
        cmocka_unit_test(what_is_read_counts_for_the_owner_whose_turn_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
