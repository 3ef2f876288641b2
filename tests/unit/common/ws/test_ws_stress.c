// SPDX-License-Identifier: Apache-2.0
// Loads that made libwebsockets stall, spin or drop connections before its buffers were made large enough: many
// connections at once, with and without TLS, messages of all sizes up to 8 MiB in both directions, flow control
// switched on and off everywhere, and thousands of idle connections beside them. Everything must arrive unchanged, and
// nothing may be left.
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_client.h"
#include "common/ws/ws_server.h"
#include "tests/fakeapi/certs.h"
#include "tests/unit/support/session_say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BUSY 200
#define IDLE 2000
#define MESSAGES 4        // of each busy connection
#define STALL_MS 30000    // without any progress: a stall
#define PATIENT_MS 600000 // no ping decides here: on a loaded machine a turn may take long, and STALL_MS finds a stall
#define DEAF_MS 5         // how long an end does not listen, at most
#define DIALS 100         // at a time
#define TLS_DIALS 10      // at a time: a server gives a handshake 20 s, and they all share a slow machine

struct relay { // a session of the server: sends back what it gets
    struct record_reader reader;
    struct list link;
    struct ws_session *session;
    bool full, deaf; // why it is paused
    struct loop_timer *timer;
};

struct busy {
    struct ws_client *client;
    bool records, open;
    struct loop_timer *timer;
    size_t size; // of the message that is under way
    uint64_t seed, sum, got;
    int left;
    struct record_reader reader;
    struct buf error;
};

struct idle {
    struct ws_client *client;
    bool open, answered;
};

static struct {
    struct loop *loop;
    struct ws_server *server;
    struct list relays;
    struct rand rand;
    struct busy busy[BUSY];
    struct idle idle[IDLE];
    unsigned busy_dialed, busy_open, busy_done, idle_open, idle_answered, dialing;
    uint64_t progress, bytes, turns;
    char failure[1024];
    bool stop;
} t;

static void failed(const char *what, const struct err *err)
{
    if (!t.failure[0])
        snprintf(t.failure, sizeof t.failure, "%s: %s", what, err ? err->msg : "");
}

// The server

static void relay_update(struct relay *relay)
{
    if (relay->full || relay->deaf)
        ws_session_pause(relay->session);
    else
        ws_session_resume(relay->session);
}

static void relay_listen(void *ctx)
{
    struct relay *relay = ctx;
    relay->deaf = false;
    relay_update(relay);
}

static int on_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    struct relay *relay = xcalloc(1, sizeof *relay);
    (void)ctx;
    (void)r;
    (void)err;
    relay->session = s;
    relay->timer = loop_timer_new(t.loop, relay_listen, relay);
    record_reader_init(&relay->reader,
                       &(struct record_reader_config){.max_body = 16 * MIB, .quota = ws_session_quota(s)});
    list_append(&t.relays, &relay->link);
    ws_session_set_user(s, relay);
    return 0;
}

static void relay_fed(struct relay *relay)
{
    relay->full = ws_session_queued(relay->session) > WS_HIGH_MARK;
    if (rand_below(&t.rand, 8) == 0) {
        relay->deaf = true;
        loop_timer_arm(relay->timer, rand_range(&t.rand, 0, DEAF_MS));
    }
    relay_update(relay);
}

static void relay_record(struct relay *relay, const struct record *rec)
{
    struct err err = ERR_INIT;
    struct blob *b = rec->blob ? blob_ref(rec->blob) : blob_copy(rec->body, rec->len, ws_session_quota(relay->session));
    struct record_header h = rec->h;
    h.type = RECORD_RESULT;
    h.dispatch = h.execute = 0;
    if (!b ||
        record_writer_push(ws_session_records(relay->session), &h, &(struct record_part){b, 0, rec->len}, 1, &err) < 0)
        failed("relay", &err);
    ws_session_wake(relay->session);
    blob_unref(b);
}

// Each record goes back as a body of its own, whole or not: the client adds them up.
static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    struct relay *relay = ws_session_user(s);
    struct record rec;
    struct err err = ERR_INIT;
    int got;
    (void)ctx;
    while ((got = record_reader_next(&relay->reader, &data, &len, &rec, &err)) == 1)
        relay_record(relay, &rec);
    if (got < 0 || (end && !record_reader_at_boundary(&relay->reader)))
        failed("the server read", &err);
    relay_fed(relay);
}

static void on_message(void *ctx, struct ws_session *s, const struct ws_message *m)
{
    struct err err = ERR_INIT;
    (void)ctx;
    if (session_say(s, m->text, m->data, m->len, &err) < 0)
        failed("echo", &err);
    relay_fed(ws_session_user(s));
}

static void on_drained(void *ctx, struct ws_session *s)
{
    struct relay *relay = ws_session_user(s);
    (void)ctx;
    relay->full = false;
    relay_update(relay);
}

static void on_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    struct relay *relay = ws_session_user(s);
    (void)ctx;
    char what[256];
    snprintf(what, sizeof what, "the server's end: closed with %u %s", code, reason);
    if (!t.stop)
        failed(what, NULL);
    record_reader_done(&relay->reader);
    loop_timer_free(relay->timer);
    list_remove(&relay->link);
    free(relay);
}

static void on_nothing(void *ctx, struct ws_session *s)
{
    (void)ctx;
    (void)s;
}

// The busy clients

static size_t random_size(void)
{
    switch (rand_below(&t.rand, 16)) {
    case 0:
        return (size_t)rand_range(&t.rand, 1, (int64_t)(8 * MIB));
    case 1:
    case 2:
    case 3:
        return (size_t)rand_range(&t.rand, 1, (int64_t)(MIB / 2));
    default:
        return (size_t)rand_range(&t.rand, 1, 5000);
    }
}

static char byte_at(uint64_t seed, uint64_t i) // printable, so that it is text as well
{
    return (char)(' ' + (seed + i * 7 + (i >> 12)) % 95);
}

static void busy_next(struct busy *b)
{
    struct err err = ERR_INIT;
    if (!b->left) {
        t.busy_done++;
        return;
    }
    b->left--;
    b->got = 0;
    b->size = random_size();
    b->seed = rand_u64(&t.rand) % 1000;
    struct blob *body = blob_new(b->size, NULL);
    for (size_t i = 0; i < b->size; i++)
        body->data[i] = byte_at(b->seed, i);
    const struct record_header h = {.type = RECORD_CALL, .call = (uint32_t)b->left + 1};
    int r = b->records ? ws_client_record(b->client, &h, &(struct record_part){body, 0, b->size}, 1, &err)
                       : ws_client_message(b->client, true, body->data, b->size, &err);
    if (r < 0)
        failed("send", &err);
    blob_unref(body);
}

static void busy_listen(void *ctx)
{
    struct busy *b = ctx;
    ws_client_resume(b->client);
}

static void busy_take(struct busy *b, const char *data, size_t len)
{
    if (rand_below(&t.rand, 16) == 0) {
        ws_client_pause(b->client);
        loop_timer_arm(b->timer, rand_range(&t.rand, 0, DEAF_MS));
    }
    t.progress++;
    t.bytes += len;
    for (size_t i = 0; i < len; i++)
        if (data[i] != byte_at(b->seed, b->got + i)) {
            failed("bytes have changed", NULL);
            return;
        }
    b->got += len;
    if (b->got > b->size)
        failed("more came back than was sent", NULL);
    if (b->got == b->size)
        busy_next(b);
}

static void busy_dial(void);

static void busy_open(void *ctx, const char *subprotocol)
{
    struct busy *b = ctx;
    (void)subprotocol;
    b->open = true;
    t.progress++;
    busy_dial();
    if (++t.busy_open == BUSY) // now, all together
        for (unsigned i = 0; i < BUSY; i++)
            busy_next(&t.busy[i]);
}

static void busy_data(void *ctx, const char *data, size_t len, bool end)
{
    struct busy *b = ctx;
    struct record rec;
    struct err err = ERR_INIT;
    int got;
    while ((got = record_reader_next(&b->reader, &data, &len, &rec, &err)) == 1)
        busy_take(b, rec.body, rec.len);
    if (got < 0 || (end && !record_reader_at_boundary(&b->reader)))
        failed("the client read", &err);
}

static void busy_message(void *ctx, bool text, const char *data, size_t len)
{
    if (!text)
        failed("binary instead of text", NULL);
    busy_take(ctx, data, len);
}

static void any_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    (void)ctx;
    char what[64];
    snprintf(what, sizeof what, "closed with %u %s", code, reason);
    if (!t.stop)
        failed(what, err);
}

// The idle clients

static void idle_dial(void);

static void idle_open(void *ctx, const char *subprotocol)
{
    struct idle *i = ctx;
    (void)subprotocol;
    i->open = true;
    t.idle_open++;
    t.progress++;
    idle_dial();
}

static void idle_message(void *ctx, bool text, const char *data, size_t len)
{
    struct idle *i = ctx;
    (void)text;
    if (i->answered || len != 5 || memcmp(data, "alive", 5) != 0)
        failed("an idle client got something else", NULL);
    i->answered = true;
    t.idle_answered++;
    t.progress++;
}

static char tcp[64], tls_address[64], unix_address[64];
static struct ws_tls *tls;

static void idle_dial(void)
{
    struct err err = ERR_INIT;
    if (t.dialing == IDLE)
        return;
    unsigned n = t.dialing++;
    t.idle[n].client = ws_client_new(t.loop,
                                     &(struct ws_client_config){.address = n % 2 ? unix_address : tcp,
                                                                .subprotocols = RECORD_SUBPROTOCOL_JSON,
                                                                .open_ms = PATIENT_MS,
                                                                .ping_ms = PATIENT_MS,
                                                                .on_open = idle_open,
                                                                .on_message = idle_message,
                                                                .on_close = any_close,
                                                                .ctx = &t.idle[n]},
                                     &err);
    if (!t.idle[n].client)
        failed("dial", &err);
}

static void busy_dial(void)
{
    struct err err = ERR_INIT;
    if (t.busy_dialed == BUSY)
        return;
    unsigned n = t.busy_dialed++;
    struct busy *b = &t.busy[n];
    b->records = n % 3 != 0;
    b->left = MESSAGES;
    b->timer = loop_timer_new(t.loop, busy_listen, b);
    record_reader_init(&b->reader, &(struct record_reader_config){.max_body = 16 * MIB});
    b->client = ws_client_new(
        t.loop,
        &(struct ws_client_config){.address = n % 2   ? tls_address
                                              : n % 4 ? tcp
                                                      : unix_address,
                                   .subprotocols = b->records ? RECORD_SUBPROTOCOL : RECORD_SUBPROTOCOL_JSON,
                                   .tls = n % 2 ? tls : NULL,
                                   .mask_always = n % 5 == 0,
                                   .open_ms = PATIENT_MS,
                                   .ping_ms = PATIENT_MS,
                                   .on_open = busy_open,
                                   .on_data = busy_data,
                                   .on_message = busy_message,
                                   .on_close = any_close,
                                   .ctx = b},
        &err);
    if (!b->client)
        failed("dial", &err);
}

static bool run_until(const unsigned *count, unsigned want)
{
    int64_t since = clock_mono_ms(&clock_system);
    uint64_t seen = t.progress;
    while (*count < want && !t.failure[0]) {
        loop_run_once(t.loop, 100);
        int64_t now = clock_mono_ms(&clock_system);
        if (t.progress != seen) {
            seen = t.progress;
            since = now;
        } else if (now - since > STALL_MS) {
            snprintf(t.failure, sizeof t.failure, "stalled: %u of %u, %llu bytes", *count, want,
                     (unsigned long long)t.bytes);
        }
    }
    return !t.failure[0];
}

static void start(const struct certs *certs)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, RECORD_SUBPROTOCOL_JSON, NULL};
    struct err err = ERR_INIT;
    t.loop = loop_new();
    rand_seed(&t.rand, 20240229);
    list_init(&t.relays);
    t.server = ws_server_new(t.loop,
                             &(struct ws_server_config){.subprotocols = subprotocols,
                                                        .cert_pem = certs->server_cert,
                                                        .key_pem = certs->server_key,
                                                        .ping_ms = PATIENT_MS,
                                                        .read_size = 16384,
                                                        .on_upgrade = on_upgrade,
                                                        .on_open = on_nothing,
                                                        .on_data = on_data,
                                                        .on_message = on_message,
                                                        .on_drained = on_drained,
                                                        .on_close = on_close},
                             &err);
    snprintf(unix_address, sizeof unix_address, "unix:/tmp/cadre-test-stress-%d.sock", (int)getpid());
    int plain = ws_server_listen(t.server, "127.0.0.1:0", false, &err);
    int secure = ws_server_listen(t.server, "127.0.0.1:0", true, &err);
    int local = ws_server_listen(t.server, unix_address, false, &err);
    assert_true(plain > 0 && secure > 0 && local == 0);
    snprintf(tcp, sizeof tcp, "127.0.0.1:%d", plain);
    snprintf(tls_address, sizeof tls_address, "127.0.0.1:%d", secure);
    tls = ws_tls_new(certs->ca, &err);
}

static void count_turn(void *ctx)
{
    (void)ctx;
    t.turns++;
}

static void set_flag(void *ctx)
{
    *(unsigned *)ctx = 1;
}

// With nothing to do the loop sleeps.
static void does_not_spin(void)
{
    unsigned over = 0;
    struct loop_hook *hook = loop_hook_new(t.loop, count_turn, NULL);
    struct loop_timer *timer = loop_timer_new(t.loop, set_flag, &over);
    loop_timer_arm(timer, 300);
    t.turns = 0;
    while (!over)
        loop_run_once(t.loop, 1000);
    assert_in_range(t.turns, 1, 2000);
    loop_timer_free(timer);
    loop_hook_free(hook);
}

static void nothing_stalls_and_nothing_is_lost(void **state)
{
    (void)state;
    struct certs certs;
    struct err err = ERR_INIT;
    certs_make(&certs);
    start(&certs);
    for (int i = 0; i < DIALS; i++)
        idle_dial();
    if (!run_until(&t.idle_open, IDLE))
        fail_msg("idle connections: %s", t.failure);
    for (int i = 0; i < TLS_DIALS; i++)
        busy_dial();
    if (!run_until(&t.busy_done, BUSY))
        fail_msg("busy connections: %s", t.failure);
    for (unsigned i = 0; i < IDLE; i++) // who slept through it is still there
        assert_int_equal(ws_client_message(t.idle[i].client, true, "alive", 5, &err), 0);
    if (!run_until(&t.idle_answered, IDLE))
        fail_msg("idle connections, later: %s", t.failure);
    assert_int_equal(ws_server_counters(t.server)->sessions, IDLE + BUSY);
    assert_int_equal(ws_server_counters(t.server)->silent, 0);
    does_not_spin();
    t.stop = true;
    for (unsigned i = 0; i < BUSY; i++) {
        record_reader_done(&t.busy[i].reader);
        loop_timer_free(t.busy[i].timer);
        ws_client_free(t.busy[i].client);
    }
    for (unsigned i = 0; i < IDLE; i++)
        ws_client_free(t.idle[i].client);
    while (ws_server_counters(t.server)->connections)
        loop_run_once(t.loop, 1000);
    assert_true(list_empty(&t.relays));
    print_message("%llu MiB came back\n", (unsigned long long)(t.bytes >> 20));
    ws_server_free(t.server);
    ws_tls_unref(tls);
    loop_free(t.loop);
    certs_done(&certs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stalls_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
