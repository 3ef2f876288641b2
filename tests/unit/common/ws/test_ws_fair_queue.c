// SPDX-License-Identifier: Apache-2.0
// Many sessions that all have something to say: how much of it is read in a turn of the loop, and of whom.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/wire/quota.h"
#include "common/ws/ws_fair_queue.h"
#include "common/ws/ws_queue.h"
#include "common/ws/ws_server_state.h"

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

static int own_by_path(void *ctx, struct ws_request *r)
{
    (void)ctx;
    ws_request_for(r, ws_request_path(r), 1);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_message = 1 << 20, .on_head = own_by_path});
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

static int dial(const char *request)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    return fd;
}

static int shake_hands(void)
{
    char answer[1024];
    int fd = dial("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                  "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n");
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

// Each a message of one byte.
static void many_short_frames_take_as_long_as_more_bytes(void **state)
{
    enum { FRAMES = WS_WAVE / 7, PEERS = 8 };
    static const uint8_t key[4] = {0};
    static char text[FRAMES * 7];
    int fds[PEERS];
    const struct ws_server_counters *counters = ws_server_counters(f.server);
    (void)state;
    for (size_t at = 0; at < sizeof text; at += 7)
        assert_int_equal(frame_header_encode(text + at, true, FRAME_TEXT, 1, key), 6);
    for (int i = 0; i < PEERS; i++)
        fds[i] = shake_hands();
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(send(fds[i], text, sizeof text, MSG_DONTWAIT), sizeof text);
    uint64_t before = counters->bytes_in;
    loop_run_once(f.loop, 100);
    assert_in_range(counters->bytes_in - before, 1, FRAMES); // of one of them
    WS_UNTIL(&f, counters->bytes_in - before == FRAMES * PEERS);
    for (int i = 0; i < PEERS; i++)
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

// Bodies of requests are read in the same turns. Each owner's name is the path.

enum { BODY_LEN = 40000 };

static void begin_post(int *fd, const char *path)
{
    char head[128];
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", path, BODY_LEN);
    *fd = dial(head);
}

static void a_turn_reads_so_much_of_bodies_and_all_owners_have_a_part(void **state)
{
    (void)state;
    static const char body[BODY_LEN];
    int fds[SESSIONS];
    const struct ws_server_counters *counters = ws_server_counters(f.server);
    for (int i = 0; i < SESSIONS; i++)
        begin_post(&fds[i], i < SESSIONS - 1 ? "/many" : "/one");
    WS_UNTIL(&f, counters->connections == SESSIONS && !f.server->n_without_request);
    loop_run_once(f.loop, 1); // from now on libwebsockets reads none of them
    for (int i = 0; i < SESSIONS; i++)
        assert_int_equal(send(fds[i], body, BODY_LEN, MSG_DONTWAIT), BODY_LEN);
    loop_run_once(f.loop, 100);
    assert_int_equal(count("POST /one"), 1);
    assert_in_range(quota_used(f.server->bodies) + count("POST ") * BODY_LEN, TURN / 2, TURN + (64 << 10));
    WS_UNTIL(&f, count("POST /many - 40000") == SESSIONS - 1);
    for (int i = 0; i < SESSIONS; i++)
        close(fds[i]);
}

// The owners' own order, without sockets

struct reader {
    struct list ready;
    struct ws_owner *owner;
};

// Returns the index of the next reader, which is ready again at once.
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
    struct ws_owner *unknown = ws_fair_queue_owner(&t, "", 1), *other = ws_fair_queue_owner(&t, "other", 1);
    list_init(&a);
    list_init(&b);
    list_init(&c);
    ws_owner_ready(unknown, &a);
    ws_owner_ready(unknown, &b);
    ws_owner_ready(other, &c);
    assert_ptr_equal(ws_fair_queue_next(&t), &a);
    struct ws_owner *known = ws_fair_queue_owner(&t, "known", 1); // what was read of a says whose it is
    ws_owner_ready(known, &a);
    ws_fair_queue_spend(&t, WS_QUANTUM);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(ws_fair_queue_next(&t), i == 0 ? &c : i == 1 ? &a : &b);
        ws_fair_queue_spend(&t, WS_QUANTUM);
    }
    ws_owner_unref(unknown);
    ws_owner_unref(known);
    ws_owner_unref(other);
    ws_fair_queue_done(&t);
}

// Random sessions come, go, change their owners and are read, also while one of them is read. Compared with a search of
// all of them: the next one was the first to be ready of the owner's, and who waits waits for one turn of each other
// owner.

enum { OWNERS = 5, READERS = 24, STEPS = 20000, MOST = 100 << 10 };

static struct {
    struct ws_fair_queue t;
    struct reader readers[READERS];
    int owner[READERS];
    unsigned since[READERS];       // 0 = it is not ready
    size_t passed[OWNERS][OWNERS]; // bytes of the second one while the first one waited
    unsigned now, seed;
} m;

static unsigned any(unsigned n)
{
    m.seed = m.seed * 1664525 + 1013904223;
    return (m.seed >> 8) % n;
}

static unsigned ready_of(int owner)
{
    unsigned n = 0;
    for (int i = 0; i < READERS; i++)
        n += m.owner[i] == owner && m.since[i];
    return n;
}

static void is_ready(int i)
{
    if (!ready_of(m.owner[i]))
        memset(m.passed[m.owner[i]], 0, sizeof m.passed[0]);
    if (!m.since[i])
        m.since[i] = ++m.now;
    ws_owner_ready(m.readers[i].owner, &m.readers[i].ready);
}

static void leaves(int i)
{
    m.since[i] = 0;
    ws_owner_leave(m.readers[i].owner, &m.readers[i].ready);
}

static void changes_owner(int i)
{
    static const char *const names[OWNERS] = {"", "a", "b", "c", "d"};
    struct ws_owner *before = m.readers[i].owner;
    m.owner[i] = (int)any(OWNERS);
    m.readers[i].owner = ws_fair_queue_owner(&m.t, names[m.owner[i]], (unsigned)m.owner[i] + 1);
    ws_owner_leave(before, &m.readers[i].ready);
    ws_owner_unref(before);
    m.since[i] = 0;
}

static void something_happens(void)
{
    int i = (int)any(READERS);
    switch (any(6)) {
    case 0:
        leaves(i);
        break;
    case 1:
        leaves(i);
        changes_owner(i);
        break;
    default:
        is_ready(i);
    }
}

static void one_is_read(void)
{
    struct list *next = ws_fair_queue_next(&m.t);
    if (!next) {
        for (int i = 0; i < OWNERS; i++)
            assert_int_equal(ready_of(i), 0);
        return;
    }
    int i = (int)(CONTAINER_OF(next, struct reader, ready) - m.readers), whose = m.owner[i];
    for (int k = 0; k < READERS; k++)
        if (m.owner[k] == whose && m.since[k])
            assert_true(m.since[i] && m.since[i] <= m.since[k]);
    size_t bytes = any(MOST);
    for (int o = 0; o < OWNERS; o++) {
        if (o == whose || !ready_of(o))
            continue;
        m.passed[o][whose] += bytes;
        assert_true(m.passed[o][whose] < ((size_t)whose + 1) * WS_QUANTUM + MOST);
    }
    memset(m.passed[whose], 0, sizeof m.passed[0]);
    m.since[i] = 0;
    if (any(3))
        is_ready(i);
    while (!any(3))
        something_happens();
    ws_fair_queue_spend(&m.t, bytes);
}

static void who_waits_waits_for_one_turn_of_each_other(void **state)
{
    (void)state;
    ws_fair_queue_init(&m.t);
    for (int i = 0; i < READERS; i++) {
        list_init(&m.readers[i].ready);
        m.readers[i].owner = ws_fair_queue_owner(&m.t, "", 1);
    }
    for (int step = 0; step < STEPS; step++) {
        unsigned n = 0;
        if (any(2))
            something_happens();
        else
            one_is_read();
        for (int i = 0; i < OWNERS; i++)
            n += ready_of(i);
        assert_int_equal(m.t.n_ready, n);
    }
    for (int i = 0; i < READERS; i++) {
        leaves(i);
        ws_owner_unref(m.readers[i].owner);
    }
    ws_fair_queue_done(&m.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_reads_so_much_and_the_next_one_goes_on_with_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(many_short_frames_take_as_long_as_more_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_of_another_owner_is_read_in_the_same_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_turn_reads_so_much_of_bodies_and_all_owners_have_a_part, setup, teardown),
        cmocka_unit_test(owners_are_read_in_turns_by_weight),
        cmocka_unit_test(an_owner_whose_sessions_have_left_is_not_next),
        cmocka_unit_test(who_waits_waits_for_one_turn_of_each_other),
        cmocka_unit_test(what_is_read_counts_for_the_owner_whose_turn_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
