// SPDX-License-Identifier: Apache-2.0
// Archives of code at the gateway: they go from an agent that keeps one to a worker that needs it.
#include "operator/gateway/archives.h"

#include "operator/gateway/worker_peer.h"
#include "tests/unit/support/gateway_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define KEEPS "\"archives\":[\"" OTHER "\",\"" SHA256 "\"]"
#define ASKED \
    "ARCHIVE 0 - {\"archive\":\"" SHA256 "\",\"offset\":%d,\"group\":\"" GATEWAY_UID "\",\"rank\":%d,\"attempt\":1}"

static struct gateway_fixture f;

static int setup(void **state)
{
    (void)state;
    gateway_fixture_start(&f, NULL, NULL);
    gateway_fixture_group(&f, 2, 1, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gateway_fixture_stop(&f);
    return 0;
}

static void agent(struct gateway_peer *p, const char *token, const char *keeps)
{
    char hello[512];
    snprintf(hello, sizeof hello, "{\"role\":\"agent\",\"version\":1,\"groups\":[]%s%s}", keeps[0] ? "," : "", keeps);
    gateway_peer_dial(p, &f, "/v1/connect", token, NULL);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, hello);
    GATEWAY_UNTIL(&f, gateway_peer_got(p, "WELCOME"));
}

static void waits(struct gateway_peer *p, uint32_t rank)
{
    char ticket[256], hello[1024];
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, rank, 0);
    gateway_peer_dial(p, &f, "/v1/connect", NULL, NULL);
    snprintf(hello, sizeof hello,
             "{\"role\":\"worker\",\"version\":1,\"rank\":%u,\"ticket\":\"%s\",\"awaits\":\"" SHA256
             "\",\"methods\":[{\"name\":\"receive\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"RANK_ZERO\"}]}",
             rank, ticket);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, hello);
    GATEWAY_UNTIL(&f, gateway_peer_got(p, "WELCOME"));
}

static void sends(struct gateway_peer *p, struct archive_piece piece)
{
    const struct record_header h = {.type = RECORD_ARCHIVE, .rank = RECORD_GROUP};
    struct buf body = BUF_INIT(4096);
    struct err err = ERR_INIT;
    piece.sha256 = piece.sha256 ? piece.sha256 : SHA256;
    piece.len = piece.data ? strlen(piece.data) : 0;
    archive_piece_write(&piece, &body);
    assert_int_equal(ws_client_record_copy(p->client, &h, body.data, body.len, &err), 0);
    buf_done(&body);
}

static void got(const struct gateway_peer *p, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    GATEWAY_UNTIL(&f, gateway_peer_got(p, text));
}

static void a_piece_goes_from_an_agent_that_has_it_to_the_worker_that_asks(void **state)
{
    struct gateway_peer without, with, worker;
    (void)state;
    agent(&without, "pod llama-0-0 uid-0", "\"archives\":[]");
    agent(&with, "pod llama-1-0 uid-1", KEEPS);
    waits(&worker, 1);
    sends(&worker, (struct archive_piece){.offset = 7});
    got(&with, ASKED, 7, 1);
    sends(&with, (struct archive_piece){.group = GATEWAY_UID, .rank = 1, .attempt = 1, .offset = 7, .data = "piece"});
    got(&worker, "ARCHIVE 0 - {\"archive\":\"" SHA256 "\",\"offset\":7}piece\n");
    assert_false(gateway_peer_got(&without, "ARCHIVE"));
    gateway_peer_hang_up(&without);
    gateway_peer_hang_up(&with);
    gateway_peer_hang_up(&worker);
}

static void nobody_has_it(void **state)
{
    struct gateway_peer agent_peer, worker;
    (void)state;
    agent(&agent_peer, "pod llama-0-0 uid-0", "");
    waits(&worker, 1);
    sends(&worker, (struct archive_piece){0});
    got(&worker, "ARCHIVE 0 - {\"archive\":\"" SHA256 "\",\"offset\":0,\"missing\":true}\n");
    gateway_peer_send(&agent_peer, RECORD_HEARTBEAT, 0, RECORD_GROUP, "{" KEEPS "}");
    gateway_peer_send(&agent_peer, RECORD_HEARTBEAT, 0, RECORD_GROUP, "{}"); // it contains no news
    do {                                                                     // until the heartbeat was read
        sends(&worker, (struct archive_piece){.offset = 1});
        for (int i = 0; i < 10; i++)
            loop_run_once(f.loop, 1);
    } while (!gateway_peer_got(&agent_peer, "ARCHIVE"));
    got(&agent_peer, ASKED, 1, 1);
    gateway_peer_hang_up(&agent_peer); // before it answers: the worker asks again
    gateway_peer_hang_up(&worker);
}

static void what_nobody_asked_for_is_thrown_away(void **state)
{
    struct gateway_peer agent_peer, worker;
    struct archive_piece piece = {.group = GATEWAY_UID, .rank = 1, .attempt = 1, .data = "early"};
    (void)state;
    agent(&agent_peer, "pod llama-0-0 uid-0", KEEPS);
    waits(&worker, 1);
    sends(&agent_peer, piece);
    sends(&agent_peer, (struct archive_piece){.group = GATEWAY_UID, .rank = 0, .attempt = 1, .data = "x"}); // not here
    sends(&agent_peer, (struct archive_piece){.group = GATEWAY_UID, .rank = 99, .attempt = 1, .data = "x"});
    sends(&agent_peer, (struct archive_piece){.group = "nobody", .rank = 1, .attempt = 1, .data = "x"});
    sends(&agent_peer, (struct archive_piece){.data = "x"}); // it names no process
    sends(&worker, (struct archive_piece){0});
    sends(&worker, (struct archive_piece){.offset = 5}); // only one at a time
    got(&agent_peer, ASKED, 0, 1);
    piece.attempt = 2;
    sends(&agent_peer, piece);
    piece.attempt = 1;
    piece.sha256 = OTHER;
    sends(&agent_peer, piece);
    piece.sha256 = SHA256;
    piece.data = "right";
    sends(&agent_peer, piece);
    sends(&agent_peer, piece); // the same piece again
    got(&worker, "right\n");
    sends(&worker, (struct archive_piece){.offset = 9});
    got(&agent_peer, ASKED, 9, 1);
    const char *first = strstr(buf_str(&worker.got), "ARCHIVE");
    assert_null(strstr(first + 1, "ARCHIVE"));
    assert_null(strstr(buf_str(&agent_peer.got), "\"offset\":5"));
    gateway_peer_hang_up(&agent_peer);
    gateway_peer_hang_up(&worker);
}

static void namespaces_give_each_other_nothing(void **state)
{
    const struct archive_piece piece = {
        .group = GATEWAY_UID, .rank = 1, .attempt = 1, .sha256 = SHA256, .data = "foreign", .len = 7};
    struct gateway_peer agent_peer, worker;
    (void)state;
    agent(&agent_peer, "pod llama-0-0 uid-0", KEEPS);
    waits(&worker, 1);
    assert_false(archives_ask(f.gateway, "other", &piece));
    sends(&worker, (struct archive_piece){0});
    got(&agent_peer, ASKED, 0, 1);
    worker_archive_piece(f.gateway, "other", &piece);
    sends(&agent_peer, (struct archive_piece){.group = GATEWAY_UID, .rank = 1, .attempt = 1, .data = "own"});
    got(&worker, "own\n");
    assert_false(gateway_peer_got(&worker, "foreign"));
    gateway_peer_hang_up(&agent_peer);
    gateway_peer_hang_up(&worker);
}

static void who_waits_for_nothing_may_not_ask(void **state)
{
    struct gateway_peer worker;
    (void)state;
    gateway_worker(&worker, &f, 0, 1);
    sends(&worker, (struct archive_piece){0});
    gateway_peer_is_closed(&worker, 1002, "rank 0 does not wait for this archive");
    waits(&worker, 1);
    gateway_peer_send(&worker, RECORD_ARCHIVE, 0, RECORD_GROUP, "{}");
    GATEWAY_UNTIL(&f, worker.closed);
    gateway_peer_hang_up(&worker);
}

static void a_list_that_is_none_closes_the_connection_of_its_agent(void **state)
{
    static const char *const lists[] = {"{\"archives\":5}", "{\"archives\":[\"a\"]}", "{\"archives\":[1]}"};
    struct gateway_peer agent_peer;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        agent(&agent_peer, "pod llama-0-0 uid-0", KEEPS);
        gateway_peer_send(&agent_peer, RECORD_HEARTBEAT, 0, RECORD_GROUP, lists[i]);
        GATEWAY_UNTIL(&f, agent_peer.closed);
        gateway_peer_hang_up(&agent_peer);
    }
    gateway_peer_dial(&agent_peer, &f, "/v1/connect", "pod llama-0-0 uid-0", NULL);
    gateway_peer_send(&agent_peer, RECORD_HELLO, 0, RECORD_GROUP,
                      "{\"role\":\"agent\",\"version\":1,\"groups\":[],\"archives\":5}");
    GATEWAY_UNTIL(&f, agent_peer.closed);
    assert_int_equal(agents_count(f.agents), 0);
    gateway_peer_hang_up(&agent_peer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_piece_goes_from_an_agent_that_has_it_to_the_worker_that_asks),
        TEST(nobody_has_it),
        TEST(what_nobody_asked_for_is_thrown_away),
        TEST(namespaces_give_each_other_nothing),
        TEST(who_waits_for_nothing_may_not_ask),
        TEST(a_list_that_is_none_closes_the_connection_of_its_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
