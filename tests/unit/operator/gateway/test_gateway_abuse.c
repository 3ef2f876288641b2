// SPDX-License-Identifier: Apache-2.0
// Peers that do what they should not. Each gets a clear end, memory stays bounded, and a good session beside them never
// notices. After every test, the good session makes another call.
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/gateway/connection.h"
#include "operator/proxy/tenant.h"
#include "tests/unit/support/gateway_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP_PATH "/v1/namespaces/ml/workergroups/llama"
#define HANDSHAKE_OF(subprotocol)                                                                                \
    "GET " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " \
    "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: " subprotocol "\r\n"
#define HANDSHAKE HANDSHAKE_OF("cadre.v1") "Authorization: Bearer alice\r\n\r\n"

enum { MAX_BODY = 256 << 10, MAX_QUEUE = 2 << 20, MAX_SESSION = 3 << 20 };
// Fits into one record, because pieces of many results at a time would count as the worker's.
enum { RESULT = 240 << 10 };

static struct gateway_fixture f;
static struct gateway_peer good, worker;

static int setup(void **state)
{
    const struct gateway_config limits = {.max_body = MAX_BODY,
                                          .max_queue = MAX_QUEUE,
                                          .max_session = MAX_SESSION,
                                          .max_calls = 64,
                                          .hello_ms = 2000,
                                          .exit_wait_ms = 20};
    (void)state;
    gateway_fixture_start(&f, &limits, NULL);
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&good, &f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    worker.quiet = false;
    gateway_peer_call(&good, 1000, "{\"method\":\"echo\"}", "[\"still there\"]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "RESULT 1000 - [{\"rank\":0,\"args\":[\"still there\"]}]"));
    gateway_peer_hang_up(&good);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 0);
    assert_int_equal(gateway_fixture_counters(&f).bytes_held, 0);
    gateway_peer_hang_up(&worker);
    gateway_fixture_stop(&f);
    return 0;
}

static void send_bytes(struct gateway_peer *p, const void *bytes, size_t len)
{
    struct err err = ERR_INIT;
    if (ws_client_message(p->client, false, bytes, len, &err) < 0)
        fail_msg("%s", err.msg);
}

static void test_id_in_use(void **state)
{
    struct gateway_peer p;
    (void)state;
    worker.quiet = true;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[1]");
    gateway_peer_call(&good, 1, "{\"method\":\"echo\"}", "[1]"); // each connection has its own ids
    GATEWAY_UNTIL(&f, worker.n_calls == 2);
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[2]");
    gateway_peer_is_closed(&p, 1002, "ERROR 0 - {\"code\":\"PROTO\",\"message\":\"call id 1 is in use");
    assert_false(good.closed);
    gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, "1");
    gateway_peer_send(&worker, RECORD_RESULT, worker.last_call - 1, 0, "1");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "RESULT 1 - [1]"));
}

// Each has an open call. Every third one disappears without a close.
static void test_thousands_of_sessions(void **state)
{
    enum { SESSIONS = 2000 };
    struct gateway_peer *peers = xcalloc(SESSIONS, sizeof *peers);
    (void)state;
    for (size_t i = 0; i < SESSIONS; i++) {
        gateway_client(&peers[i], &f);
        gateway_peer_call(&peers[i], 1, "{\"method\":\"echo\"}", "[1]");
    }
    for (size_t i = 0; i < SESSIONS; i += 3)
        gateway_peer_hang_up(&peers[i]);
    for (size_t i = 0; i < SESSIONS; i++)
        if (i % 3)
            GATEWAY_UNTIL(&f, gateway_peer_got(&peers[i], "RESULT 1 - [{\"rank\":0,\"args\":[1]}]"));
    gateway_peer_call(&good, 1, "{\"method\":\"echo\"}", "[2]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "RESULT 1 - [{\"rank\":0,\"args\":[2]}]"));
    for (size_t i = 0; i < SESSIONS; i++)
        if (i % 3)
            gateway_peer_hang_up(&peers[i]);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
    assert_int_equal(gateway_fixture_counters(&f).bytes_held, 0);
    free(peers);
}

// Wrong records about shared memory: a descriptor that is none, an empty body, a peer that shares none.
static void test_lies_about_shared_memory(void **state)
{
    static const struct {
        enum record_type type;
        const char *body, *error;
    } lies[] = {{RECORD_MEMORY, "aaaabbbbccccdddd", "cannot open"},
                {RECORD_MEMORY, "short", "a MEMORY of 5 bytes"},
                {RECORD_RETURN, "aaaa", "which was not lent"},
                {RECORD_RETURN, "abc", "a RETURN of 3 bytes"}};
    const struct gateway_config limits = {.share = true};
    struct gateway_fixture here;
    struct gateway_peer p;
    char address[64];
    (void)state;
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-abuse-%d.sock", (int)getpid());
    gateway_fixture_start(&here, &limits, address);
    gateway_fixture_group(&here, 1, 1, NULL);
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        gateway_client(&p, &here);
        gateway_peer_send(&p, lies[i].type, 0, RECORD_GROUP, lies[i].body);
        GATEWAY_UNTIL(&here, p.closed);
        if (p.code != 1002 || !strstr(p.reason, lies[i].error))
            fail_msg("closed with %u (%s): %s", p.code, p.reason, buf_str(&p.got));
        gateway_peer_hang_up(&p);
    }
    gateway_fixture_stop(&here);
    gateway_client(&p, &f); // over TCP
    gateway_peer_send(&p, RECORD_MEMORY, 0, RECORD_GROUP, "aaaabbbbccccdddd");
    gateway_peer_is_closed(&p, 1002, "although no memory is shared here");
}

static void test_body_over_the_cap(void **state)
{
    struct gateway_peer p;
    _cleanup_(free_p) char *args = xmalloc(2 * MAX_BODY + 1);
    (void)state;
    memset(args, '1', 2 * MAX_BODY);
    args[2 * MAX_BODY] = '\0';
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", args); // in many records
    gateway_peer_is_closed(&p, 1009, "ERROR 0 - {\"code\":\"LIMIT\"");
    gateway_client(&p, &f);
    send_bytes(&p, args, 2 * MAX_BODY); // in one message
    GATEWAY_UNTIL(&f, p.closed);
    assert_true(p.code == 1009 || p.code == 1002); // the first piece is not a record, either
    gateway_peer_hang_up(&p);
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    gateway_peer_text(&p, args);
    gateway_peer_is_closed(&p, 1009, "");
}

static void test_broken_records(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        unsigned code;
        const char *error;
    } cases[] = {
#define C(bytes, code, error) {bytes, sizeof bytes - 1, code, error}
        C("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\x63\0\0\0", 1002, "PROTO"),       // no such type
        C("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\4\xf0\0\0", 1002, "PROTO"),       // no such flags
        C("\0\0\0\0\0\0\0\0\xff\xff\xff\xff\4\0\0\0", 1002, "PROTO"),         // a call without an id
        C("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\4\0\x63\0", 1002, "PROTO"),       // no such mode
        C("\xff\xff\xff\xff\1\0\0\0\xff\xff\xff\xff\4\0\0\0", 1009, "LIMIT"), // a length of 4 GiB
        C("\4\0\0\0\1\0\0\0\xff\xff\xff\xff\4\0\0\0\0\0", 1002, "ended inside a record"),
        C("\0\0", 1002, "ended inside a record"),
        C("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\7\0\0\0", 1002, "a client must not send RESULT"),
        C("\0\0\0\0\0\0\0\0\xff\xff\xff\xff\1\0\0\0", 1002, "a client must not send HELLO"),
        C("\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x10\0\0\0", 1002, "a client must not send START"),
#undef C
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct gateway_peer p;
        gateway_client(&p, &f);
        send_bytes(&p, cases[i].bytes, cases[i].len);
        gateway_peer_is_closed(&p, cases[i].code, cases[i].error);
    }
}

// An error in a call is an error of that call only.
static void test_broken_calls(void **state)
{
    (void)state;
    gateway_peer_call(&good, 1, "{", "");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 1 - {\"code\":\"INVALID\""));
    gateway_peer_call(&good, 2, "{\"method\":\"each\"}", "[1,2]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 2 - {\"code\":\"INVALID\""));
    gateway_peer_call(&good, 3, "{\"method\":\"nothing\"}", "[]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 3 - {\"code\":\"NOT_FOUND\""));
    gateway_peer_call(&good, 4, "{\"method\":\"echo\",\"group\":\"other/llama\"}", "[]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 4 - {\"code\":\"FORBIDDEN\""));
    gateway_peer_send(&good, RECORD_CALL, 5, RECORD_GROUP, "\xff\xff\xff\xff");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 5 - {\"code\":\""));
    gateway_peer_send(&good, RECORD_CANCEL, 77, RECORD_GROUP, "{}"); // there is no such call: nothing happens
}

static void test_the_wrong_kind_of_message(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_text(&p, "{}");
    gateway_peer_is_closed(&p, 1003, "cadre.v1 has others");
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    send_bytes(&p, "{}", 2);
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1003);
    gateway_peer_hang_up(&p);
}

static void test_text_from_workers(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/connect", NULL, "cadre.v1.json, cadre.v1");
    gateway_peer_text(&p, "{}");
    gateway_peer_is_closed(&p, 1003, "");
}

static void test_too_many_calls(void **state)
{
    struct gateway_peer p;
    (void)state;
    worker.quiet = true;
    gateway_client(&p, &f);
    for (uint32_t i = 1; i <= 65; i++)
        gateway_peer_call(&p, i, "{\"method\":\"echo\"}", "[1]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 65 - {\"code\":\"THROTTLED\""));
    assert_true(
        gateway_peer_got(&p, "which is the limit; wait for some of them\",\"retryAfterMs\":100,\"ran\":false}"));
    assert_false(p.closed);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
    for (uint32_t i = 0; i < 64; i++) // the worker must still answer them
        gateway_peer_send(&worker, RECORD_RESULT, worker.last_call - i, 0, "1");
}

static void test_much_before_welcome(void **state)
{
    struct gateway_peer p;
    _cleanup_(free_p) char *args = xmalloc(60001);
    (void)state;
    memset(args, '1', 60000);
    args[60000] = '\0';
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, "{\"role\":\"controller\"}");
    for (uint32_t i = 1; i <= 25; i++)
        gateway_peer_call(&p, i, "{\"method\":\"echo\"}", args);
    GATEWAY_UNTIL(&f, p.opened && f.late);
    for (int i = 0; i < 50; i++)
        loop_run_once(f.loop, 1);
    assert_int_equal(p.got.len, 0); // it is not read meanwhile ...
    f.late(f.late_ctx, &(struct client_user){.name = "late"}, 0, &(struct err){0});
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 25 ")); // ... and nothing is lost
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
}

// The namespace has no turn until input of the peer, the second client, waits for one. The test ends if the peer gets
// an error instead.
static void wait_for_unread(const struct gateway_peer *p, const struct connection *c, struct tenant *t)
{
    enum { TURNS = 10000 };
    for (int i = 0; i < TURNS && gateway_fixture_counters(&f).clients == 2 && !gateway_peer_got(p, "ERROR"); i++) {
        tenant_spend(t, (size_t)1 << 20);
        loop_run_once(f.loop, 1);
        if (gateway_fixture_counters(&f).clients == 2 && !list_empty(&c->unread))
            return;
    }
    fail_msg("no input waits: %.*s", (int)p->got.len, p->got.data);
}

// Records that wait for a turn of the loop are what one read has brought. So their connection stays, even if the share
// of its namespace has no room for them.
static void test_records_without_room_wait_for_a_turn(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    const struct connection *c = CONTAINER_OF(f.gateway->connections.prev, struct connection, link);
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    size_t taken = quota_left(t->quota);
    assert_true(quota_charge(t->quota, taken));
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[1]");
    wait_for_unread(&p, c, t);
    assert_true(quota_used(ws_session_quota(c->ws)) > 0); // it counts as the connection's
    quota_refund(t->quota, taken);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - [{\"rank\":0,\"args\":[1]}]"));
    assert_int_equal(quota_used(ws_session_quota(c->ws)), 0);
    tenant_unref(t);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
}

// The answer to the first record makes the second one wait again, while nobody has memory for it.
static void test_what_waits_again_is_paid_for_already(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    const struct connection *c = CONTAINER_OF(f.gateway->connections.prev, struct connection, link);
    struct quota *all = gateway_router(f.gateway)->bytes;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    for (uint32_t id = 1; id <= 2; id++)
        gateway_peer_call(&p, id, "{\"method\":\"echo\"}", "[1]");
    wait_for_unread(&p, c, t);
    assert_ptr_equal(c->unread.next, c->unread.prev); // one read has brought both
    size_t taken = quota_left(all);
    assert_true(quota_charge(all, taken));
    GATEWAY_UNTIL(&f, p.closed || gateway_peer_got(&p, "ERROR 2 - {\"code\":\"THROTTLED\""));
    quota_refund(all, taken);
    assert_false(p.closed);
    assert_true(gateway_peer_got(&p, "ERROR 1 - {\"code\":\"THROTTLED\""));
    tenant_unref(t);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
}

// A long text waits here while its namespace owes turns of the loop. If its share has no room for the text, the
// connection is closed.
static void test_what_waits_for_a_turn_is_charged(void **state)
{
    struct gateway_peer p;
    char *text = calloc(1, 200000);
    (void)state;
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    GATEWAY_UNTIL(&f, p.opened);
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    size_t taken = quota_left(t->quota) - 100000;
    assert_true(quota_charge(t->quota, taken));
    memset(text, ' ', 199999);
    gateway_peer_text(&p, text);
    while (!p.closed) {
        tenant_spend(t, (size_t)1 << 20);
        loop_run_once(f.loop, 1);
    }
    assert_int_equal(p.code, 1013);
    gateway_peer_hang_up(&p);
    quota_refund(t->quota, taken);
    tenant_unref(t);
    free(text);
}

enum { HALF = 60000 };

// An admitted connection that sends a part of a text and never its end.
static int send_half_a_text(const char *handshake)
{
    static char frame[8 + HALF] = "\x01\xfe\xea\x60"; // a frame of 60,000 bytes, not the last one; the mask is 0
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)f.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[1024];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, handshake, strlen(handshake), 0), strlen(handshake));
    GATEWAY_UNTIL(&f, recv(fd, answer, sizeof answer, MSG_DONTWAIT | MSG_PEEK) > 0);
    assert_memory_equal(answer, "HTTP/1.1 101 ", 13);
    memset(frame + 8, ' ', HALF);
    assert_int_equal(send(fd, frame, sizeof frame, 0), sizeof frame);
    return fd;
}

static void test_half_a_text_is_charged_to_the_namespace_of_its_client(void **state)
{
    (void)state;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    int fd = send_half_a_text(HANDSHAKE_OF("cadre.v1.json") "Authorization: Bearer alice\r\n\r\n");
    GATEWAY_UNTIL(&f, quota_used(t->quota) >= HALF);
    close(fd);
    GATEWAY_UNTIL(&f, quota_used(t->quota) == 0);
    tenant_unref(t);
}

// The results of a text are charged while the text still exists. A share must have room for only one of them.
static void test_a_text_and_its_call_are_not_charged_twice(void **state)
{
    enum { ARGS = 200000 };
    struct gateway_peer p;
    _cleanup_(free_p) char *text = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"method\":\"echo\",\"args\":[1%*s]}}",
        ARGS, "");
    (void)state;
    worker.quiet = true;
    uint32_t before = worker.n_calls;
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    GATEWAY_UNTIL(&f, p.opened);
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    size_t taken = quota_left(t->quota) - ARGS * 9 / 5; // everything that is held elsewhere takes half of it, too
    assert_true(quota_charge(t->quota, taken));
    gateway_peer_text(&p, text);
    GATEWAY_UNTIL(&f, worker.n_calls > before || p.got.len);
    assert_int_equal(p.got.len, 0); // it is not refused
    gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, "1");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"result\":[1]"));
    quota_refund(t->quota, taken);
    tenant_unref(t);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
}

static void test_half_a_text_is_charged_to_the_strangers_before_it_says_who_it_is(void **state)
{
    (void)state;
    int fd = send_half_a_text(HANDSHAKE_OF("cadre.v1") "\r\n");
    GATEWAY_UNTIL(&f, quota_used(f.gateway->unadmitted) >= HALF);
    close(fd);
    GATEWAY_UNTIL(&f, quota_used(f.gateway->unadmitted) == 0);
}

static void send_piece(struct gateway_peer *p, enum record_type type, uint32_t call, uint8_t flags, size_t len)
{
    _cleanup_(free_p) char *piece = calloc(1, RECORD_HEADER_SIZE + len);
    memset(piece + RECORD_HEADER_SIZE, ' ', len);
    record_header_encode(piece, &(struct record_header){.type = (uint8_t)type,
                                                        .flags = flags,
                                                        .call = call,
                                                        .rank = type == RECORD_CALL ? RECORD_GROUP : 0,
                                                        .len = (uint32_t)len});
    send_bytes(p, piece, RECORD_HEADER_SIZE + len);
}

// A worker has sent a part of a body that the proxy must have whole.
static void test_half_an_answer_is_charged_to_the_namespace_of_its_group(void **state)
{
    (void)state;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    worker.quiet = true;
    gateway_peer_call(&good, 1, "{\"method\":\"echo\"}", "[1]");
    GATEWAY_UNTIL(&f, worker.last_call);
    size_t before = quota_used(t->quota);
    send_piece(&worker, RECORD_ERROR, worker.last_call, RECORD_MORE, HALF);
    GATEWAY_UNTIL(&f, quota_used(t->quota) >= before + HALF);
    // If the share has no room for the rest, the caller gets the reason. Others do not notice.
    size_t taken = quota_left(t->quota);
    assert_true(quota_charge(t->quota, taken));
    send_piece(&worker, RECORD_ERROR, worker.last_call, RECORD_MORE, HALF);
    send_piece(&worker, RECORD_ERROR, worker.last_call, 0, 1);
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 1 "));
    assert_false(worker.closed);
    quota_refund(t->quota, taken);
    tenant_unref(t);
}

enum { MANY = 8, TINY = 2000 };

// Records of 16 bytes: each counts as 1 KiB of the 512 KiB that are read in a turn.
static void test_small_records_are_few_in_a_turn(void **state)
{
    static char cancels[TINY * RECORD_HEADER_SIZE];
    const struct record_header h = {.type = RECORD_CANCEL, .call = 1000000, .rank = RECORD_GROUP};
    struct gateway_peer p[MANY];
    uint64_t most = 0;
    (void)state;
    for (size_t i = 0; i < TINY; i++)
        record_header_encode(cancels + i * RECORD_HEADER_SIZE, &h);
    for (size_t i = 0; i < MANY; i++)
        gateway_client(&p[i], &f);
    uint64_t begun = gateway_fixture_counters(&f).bytes_in, got = begun;
    for (size_t i = 0; i < MANY; i++)
        send_bytes(&p[i], cancels, sizeof cancels);
    while (got < begun + MANY * sizeof cancels) {
        loop_run_once(f.loop, 10);
        uint64_t before = got;
        got = gateway_fixture_counters(&f).bytes_in;
        most = MAX(most, got - before);
    }
    for (size_t i = 0; i < MANY; i++)
        gateway_peer_hang_up(&p[i]);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
    assert_in_range(most, 1, 64 << 10); // the bytes of one read, and the rest of a turn
}

// A client calls, and does not read the answers. Answers that do not fit into the sockets are held here, up to the
// limit. Then the client is closed, and all memory is free again.
static void test_slow_reader(void **state)
{
    struct gateway_peer p;
    _cleanup_(free_p) char *result = xmalloc(RESULT);
    (void)state;
    memset(result, '1', RESULT - 1);
    result[RESULT - 1] = '\0';
    worker.quiet = true;
    gateway_client(&p, &f);
    ws_client_pause(p.client);
    uint32_t first = worker.last_call + 1;
    for (uint32_t i = 1; i <= 64; i++)
        gateway_peer_call(&p, i, "{\"method\":\"echo\"}", "[1]");
    GATEWAY_UNTIL(&f, worker.last_call == first + 63);
    for (uint32_t i = 0; i < 64; i++)
        gateway_peer_send(&worker, RECORD_RESULT, first + i, 0, result);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
    GATEWAY_UNTIL(&f, ws_client_queued(worker.client) == 0);
    assert_false(worker.closed || good.closed);
    ws_client_resume(p.client);
    gateway_peer_is_closed(&p, 1013,
                           "ERROR 0 - {\"code\":\"LIMIT\",\"message\":\"the client reads its answers too slowly");
}

// Sends calls in the middle of another one, and reads no answers, until the gateway stops reading. full: its namespace
// has no room left meanwhile.
static void read_nothing_in_the_middle_of_a_call(bool full)
{
    enum { MESSAGES = 40, RECORDS = 1000, RECORD = RECORD_HEADER_SIZE + 4, SOME = 64 << 10 };
    static char bytes[RECORDS * RECORD];
    struct gateway_fixture here;
    struct gateway_peer p;
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-abuse-%d.sock", (int)getpid()); // its buffers are small
    gateway_fixture_start(&here, NULL, address);
    gateway_client(&p, &here);
    ws_client_pause(p.client);
    send_piece(&p, RECORD_CALL, 1, RECORD_MORE, 1);
    for (size_t i = 0; i < RECORDS; i++) { // heads that are too long: each is answered with an error
        const struct record_header h = {.type = RECORD_CALL, .call = 2, .rank = RECORD_GROUP, .len = 4};
        record_header_encode(bytes + i * RECORD, &h);
        memset(bytes + i * RECORD + RECORD_HEADER_SIZE, 0xff, 4);
    }
    uint64_t begun = gateway_fixture_counters(&here).bytes_in;
    struct tenant *t = tenant_get(gateway_router(here.gateway), "ml");
    size_t taken = full ? quota_left(t->quota) : 0;
    assert_true(quota_charge(t->quota, taken));
    for (size_t i = 0; i < MESSAGES; i++)
        send_bytes(&p, bytes, sizeof bytes);
    const struct connection *c = CONTAINER_OF(here.gateway->connections.next, struct connection, link);
    const struct record_queue *answers = &ws_session_records(c->ws)->queue;
    const struct gateway_counters *counters = &here.gateway->counters;
    GATEWAY_UNTIL(&here, !counters->clients || answers->bytes > WS_HIGH_MARK || !list_empty(&c->unread));
    for (int i = 0; i < 200; i++) {
        assert_int_equal(counters->clients, 1);
        assert_in_range(answers->bytes + c->waiting_bytes, 0, WS_HIGH_MARK + SOME + sizeof bytes);
        loop_run_once(here.loop, 1);
    }
    quota_refund(t->quota, taken);
    tenant_unref(t);
    ws_client_resume(p.client);
    GATEWAY_UNTIL(&here, gateway_fixture_counters(&here).bytes_in >= begun + MESSAGES * sizeof bytes);
    gateway_peer_hang_up(&p);
    gateway_fixture_stop(&here);
}

// A call that has begun and does not end is no leave to send others without an end and to read no answers.
static void test_slow_reader_in_the_middle_of_a_call(void **state)
{
    (void)state;
    read_nothing_in_the_middle_of_a_call(false);
}

// Others in its namespace have filled the share. The client waits, and its call goes on when there is room again.
static void test_slow_reader_in_the_middle_of_a_call_without_room(void **state)
{
    (void)state;
    read_nothing_in_the_middle_of_a_call(true);
}

// Calls and does not read until so many bytes are held here, beyond those in the sockets. Returns the last call.
static uint32_t leave_results(struct gateway_peer *p, const char *result, size_t held)
{
    uint32_t id = 0;
    while (gateway_fixture_counters(&f).bytes_held < held && !worker.closed) {
        uint32_t call = worker.last_call + 1;
        gateway_peer_call(p, ++id, "{\"method\":\"echo\"}", "[1]");
        GATEWAY_UNTIL(&f, worker.closed || worker.last_call == call);
        gateway_peer_send(&worker, RECORD_RESULT, call, 0, result);
        GATEWAY_UNTIL(&f, worker.closed || ws_client_queued(worker.client) == 0);
        loop_run_once(f.loop, 1);
    }
    return id;
}

// Several clients leave more here than one session may hold. It counts as theirs, not as the worker's.
static void test_slow_readers_together(void **state)
{
    struct gateway_peer p[4];
    uint32_t last[ARRAY_LEN(p)];
    _cleanup_(free_p) char *result = xmalloc(RESULT);
    (void)state;
    memset(result, '1', RESULT - 1);
    result[RESULT - 1] = '\0';
    worker.quiet = true;
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        gateway_client(&p[i], &f);
        ws_client_pause(p[i].client);
        last[i] = leave_results(&p[i], result, (i + 1) * MAX_SESSION / (ARRAY_LEN(p) - 1));
        assert_false(worker.closed);
    }
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "RESULT %u - [", last[i]);
        ws_client_resume(p[i].client);
        GATEWAY_UNTIL(&f, gateway_peer_got(&p[i], expected));
        gateway_peer_hang_up(&p[i]);
    }
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
}

// Bytes that are not websocket frames, or only begin like them.
static void test_bare_sockets(void **state)
{
    static const char *const requests[] = {
        "\r\n\r\n",
        "GET\r\n\r\n",
        "BREW /v1/ca HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /v1/ca HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "GET " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        HANDSHAKE "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", // a frame of 2^64 bytes
        HANDSHAKE "\xff\x80\x00\x00\x00\x00",                 // reserved bits
        HANDSHAKE "\x83\x80\x00\x00\x00\x00",                 // no such opcode
        HANDSHAKE "\x80\x80\x00\x00\x00\x00",                 // a continuation of nothing
        HANDSHAKE "\x09\x80\x00\x00\x00\x00",                 // a ping in pieces
        HANDSHAKE "\x81\x82\x00\x00\x00\x00\xff\xff",         // text that is not UTF-8
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        size_t len = strlen(requests[i]);
        if (str_starts(requests[i], "GET " GROUP_PATH) && strstr(requests[i], "alice"))
            len = sizeof HANDSHAKE - 1 + 6; // with the zeros
        free(gateway_ask(&f, requests[i], len));
        assert_false(good.closed);
    }
}

// Random records that begin well. If the test fails, it prints the seed.
static void test_nonsense(void **state)
{
    struct rand rand;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct gateway_peer p;
        rand_seed(&rand, seed);
        gateway_client(&p, &f);
        for (int i = 0; i < 20 && !p.closed; i++) {
            char bytes[64];
            size_t len = 1 + rand_below(&rand, sizeof bytes);
            for (size_t k = 0; k < len; k++)
                bytes[k] = (char)rand_below(&rand, rand_below(&rand, 3) ? 9 : 256);
            struct err err = ERR_INIT;
            (void)ws_client_message(p.client, false, bytes, len, &err);
            loop_run_once(f.loop, 0);
        }
        GATEWAY_UNTIL(&f, p.closed);
        if (p.code != 1002 && p.code != 1009)
            fail_msg("seed %llu: closed with %u", (unsigned long long)seed, p.code);
        gateway_peer_hang_up(&p);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lies_about_shared_memory),
        TEST(test_id_in_use),
        TEST(test_thousands_of_sessions),
        TEST(test_body_over_the_cap),
        TEST(test_broken_records),
        TEST(test_broken_calls),
        TEST(test_the_wrong_kind_of_message),
        TEST(test_text_from_workers),
        TEST(test_too_many_calls),
        TEST(test_much_before_welcome),
        TEST(test_records_without_room_wait_for_a_turn),
        TEST(test_what_waits_again_is_paid_for_already),
        TEST(test_what_waits_for_a_turn_is_charged),
        TEST(test_half_a_text_is_charged_to_the_namespace_of_its_client),
        TEST(test_a_text_and_its_call_are_not_charged_twice),
        TEST(test_half_a_text_is_charged_to_the_strangers_before_it_says_who_it_is),
        TEST(test_half_an_answer_is_charged_to_the_namespace_of_its_group),
        TEST(test_small_records_are_few_in_a_turn),
        TEST(test_slow_reader),
        TEST(test_slow_reader_in_the_middle_of_a_call),
        TEST(test_slow_reader_in_the_middle_of_a_call_without_room),
        TEST(test_slow_readers_together),
        TEST(test_bare_sockets),
        TEST(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
