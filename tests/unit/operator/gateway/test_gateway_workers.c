// SPDX-License-Identifier: Apache-2.0
// Worker processes at the gateway: tickets, also wrong ones; and real cadre-worker processes with the accumulator,
// which answer calls.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/gateway/gateway_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4 };

static pid_t pids[RANKS]; // of real processes, 0 = none

static int teardown(void **state)
{
    for (int i = 0; i < RANKS; i++)
        if (pids[i]) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            pids[i] = 0;
        }
    return world_teardown(state);
}

static void dial(struct gateway_peer *p, uint32_t rank, const char *ticket)
{
    gateway_peer_dial(p, &f, "/v1/connect", NULL, NULL);
    gateway_worker_hello(p, rank, ticket);
}

static void assert_refused(uint32_t rank, const char *ticket, unsigned code, const char *error)
{
    struct gateway_peer p;
    dial(&p, rank, ticket);
    GATEWAY_UNTIL(&f, p.closed);
    if (p.code != code || !gateway_peer_got(&p, error))
        fail_msg("closed with %u: %s", p.code, buf_str(&p.got));
    assert_false(gateway_peer_got(&p, "WELCOME"));
    gateway_peer_hang_up(&p);
}

// Tickets

static void test_welcome(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_group(&f, 2, 3, NULL);
    gateway_worker(&p, &f, 1, 3);
    assert_true(gateway_peer_got(&p, "\"uid\":\"" GATEWAY_UID "\",\"worldSize\":2,\"attempt\":3}"));
    assert_true(gateway_peer_got(&p, "\"peerSecret\":\"secret-" GATEWAY_UID "-3\""));
    assert_int_equal(gateway_fixture_counters(&f).workers, 1);
    gateway_peer_send(&p, RECORD_GOODBYE, 0, 1, "{\"reason\":\"the worker was told to stop\"}");
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1000);
    assert_int_equal(gateway_fixture_counters(&f).workers, 0);
    gateway_peer_hang_up(&p);
}

static void test_a_ticket_is_good_once(void **state)
{
    struct gateway_peer p, q, again;
    char ticket[256];
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, 0, 0);
    gateway_worker(&p, &f, 0, 1);
    assert_refused(0, ticket, 1008,
                   "ERROR 0 - {\"code\":\"UNAUTHORIZED\",\"message\":\"the ticket of rank 0 (number 0) was used");
    assert_false(p.closed); // the right worker stays
    dial(&again, 0, p.ticket);
    GATEWAY_UNTIL(&f, gateway_peer_got(&again, "WELCOME"));
    GATEWAY_UNTIL(&f, p.closed); // the newer connection has its place
    assert_string_not_equal(again.ticket, p.ticket);
    assert_refused(0, p.ticket, 1008, "was used");
    ws_client_close(again.client, 1001, "the network changes");
    GATEWAY_UNTIL(&f, again.closed);
    assert_refused(0, ticket, 1008, "was used"); // also if the place is free
    dial(&q, 0, again.ticket);
    GATEWAY_UNTIL(&f, gateway_peer_got(&q, "WELCOME"));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
    gateway_peer_hang_up(&again);
}

// A process that has not seen its WELCOME has only the ticket that it has shown.
static void can_show_its_ticket_again(void (*ends)(struct gateway_peer *p))
{
    struct gateway_peer p, q;
    char ticket[256];
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, 0, 0);
    dial(&p, 0, ticket);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).workers == 1);
    ends(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).workers == 0);
    dial(&q, 0, ticket);
    GATEWAY_UNTIL(&f, gateway_peer_got(&q, "WELCOME"));
    gateway_peer_hang_up(&q);
}

static void test_welcome_that_was_lost(void **state)
{
    (void)state;
    can_show_its_ticket_again(gateway_peer_hang_up);
}

static void gives_up(struct gateway_peer *p)
{
    ws_client_close(p->client, FRAME_CLOSE_POLICY, "no WELCOME within 10000 ms");
    GATEWAY_UNTIL(&f, p->closed);
    gateway_peer_hang_up(p);
}

static void test_welcome_that_came_too_late(void **state)
{
    (void)state;
    can_show_its_ticket_again(gives_up);
}

static void test_tickets_that_are_refused(void **state)
{
    struct gateway_peer p;
    char ticket[256];
    (void)state;
    gateway_fixture_group(&f, 2, 2, NULL);
    assert_refused(0, "nonsense", 1008, "ERROR 0 - {\"code\":\"UNAUTHORIZED\"");
    gateway_fixture_ticket(ticket, GATEWAY_UID, 2, 0, 0);
    ticket[strlen(ticket) - 1] ^= 1; // it is forged
    assert_refused(0, ticket, 1008, "not our ticket");
    gateway_fixture_ticket(ticket, GATEWAY_UID, 2, 1, 0); // for another rank than in the HELLO
    assert_refused(0, ticket, 1008, "FORBIDDEN");
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, 0, 0); // for an attempt that is over
    assert_refused(0, ticket, 1008, "CONFLICT");
    gateway_fixture_ticket(ticket, GATEWAY_UID, 2, 7, 0);
    assert_refused(7, ticket, 1008, "ml/llama has no rank 7");
    gateway_fixture_ticket(ticket, "another-group", 2, 0, 0); // the group is not in the store yet: connect again
    assert_refused(0, ticket, 1013, "ERROR 0 - {\"code\":\"UNAVAILABLE\"");

    gateway_peer_dial(&p, &f, "/v1/connect", NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, "{\"role\":\"worker\"}");
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1008);
    gateway_peer_hang_up(&p);
    // The HELLO names one group, and the ticket is for another one.
    char hello[512];
    gateway_fixture_ticket(ticket, GATEWAY_UID, 2, 0, 0);
    snprintf(hello, sizeof hello, "{\"role\":\"worker\",\"group\":\"other\",\"ticket\":\"%s\",\"methods\":[]}", ticket);
    gateway_peer_dial(&p, &f, "/v1/connect", NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, hello);
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1008);
    assert_true(gateway_peer_got(&p, "the ticket is for another process"));
    gateway_peer_hang_up(&p);
    assert_int_equal(gateway_fixture_counters(&f).workers, 0);
    gateway_worker(&p, &f, 0, 2); // all this has not used up the ticket
    gateway_peer_hang_up(&p);
}

static void test_the_group_comes_later(void **state)
{
    struct gateway_peer p;
    char ticket[256];
    (void)state;
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, 0, 0);
    assert_refused(0, ticket, 1013, "UNAVAILABLE");
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&p, &f, 0, 1); // with the same ticket
    gateway_peer_hang_up(&p);
}

static void test_restart(void **state)
{
    struct gateway_peer old, new, p;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&old, &f, 0, 1);
    gateway_client(&p, &f);
    old.quiet = true;
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[1]");
    GATEWAY_UNTIL(&f, old.last_call);
    gateway_fixture_group(&f, 1, 2, NULL);
    GATEWAY_UNTIL(&f, old.closed && gateway_peer_got(&p, "ERROR 1 0 {\"code\":\"UNAVAILABLE\""));
    assert_int_equal(old.code, 1008);
    assert_true(gateway_peer_got(&old, "this attempt of the group is over"));
    gateway_peer_call(&p, 2, "{\"method\":\"echo\"}", "[2]"); // it waits for the new attempt
    gateway_worker(&new, &f, 0, 2);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 2 - [{\"rank\":0,\"args\":[2]}]"));
    gateway_group_gone(f.gateway, GATEWAY_UID);
    GATEWAY_UNTIL(&f, new.closed);
    gateway_peer_call(&p, 3, "{\"method\":\"echo\"}", "[2]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 3 - {\"code\":\"NOT_FOUND\""));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&old);
    gateway_peer_hang_up(&new);
}

static void test_broken_protocol(void **state)
{
    struct gateway_peer p, q;
    (void)state;
    gateway_fixture_group(&f, 2, 1, NULL);
    gateway_worker(&q, &f, 1, 1);
    gateway_worker(&p, &f, 0, 1);
    gateway_peer_send(&p, RECORD_RESULT, 99, 0, "1"); // there is no such call
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1002);
    assert_true(gateway_peer_got(&p, "rank 0 answers call 99, which it does not have"));
    gateway_peer_hang_up(&p);
    char ticket[256];
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, 0, 1);
    dial(&p, 0, ticket);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[]"); // a worker is not a client
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1002);
    assert_false(q.closed);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
}

// Real processes

static void start_worker(uint32_t attempt, uint32_t rank)
{
    char ticket[256], env[6][320], connect[160];
    gateway_fixture_ticket(ticket, GATEWAY_UID, attempt, rank, 0);
    bool is_unix = str_starts(f.address, "unix:");
    snprintf(connect, sizeof connect, is_unix ? "%s" : "ws://%s/v1/connect", f.address);
    snprintf(env[0], sizeof env[0], "RANK=%u", rank);
    snprintf(env[1], sizeof env[1], "WORLD_SIZE=%d", RANKS);
    snprintf(env[2], sizeof env[2], "CADRE_TICKET=%s", ticket);
    snprintf(env[3], sizeof env[3], "CADRE_GROUP_UID=%s", GATEWAY_UID);
    snprintf(env[4], sizeof env[4], "CADRE_ATTEMPT=%u", attempt);
    snprintf(env[5], sizeof env[5], "ASAN_OPTIONS=handle_segv=0:handle_abort=0");
    const char *const argv[] = {WORKER, "--module", ACCUMULATOR_SO, "--connect", connect, NULL};
    const char *const envp[] = {env[0], env[1], env[2], env[3], env[4], env[5], NULL};
    assert_int_equal(posix_spawn(&pids[rank], WORKER, NULL, NULL, (char **)argv, (char **)envp), 0);
}

static bool ended(uint32_t rank, int *ret_status)
{
    if (pids[rank] && waitpid(pids[rank], ret_status, WNOHANG) == pids[rank])
        pids[rank] = 0;
    return !pids[rank];
}

static int end_worker(uint32_t rank, int signo)
{
    int status = -1;
    kill(pids[rank], signo);
    GATEWAY_UNTIL(&f, ended(rank, &status));
    return status;
}

static void test_real_processes(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_group(&f, RANKS, 1, NULL);
    for (uint32_t i = 0; i < RANKS; i++)
        start_worker(1, i);
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"add\"}", "[10]"); // it waits until they are connected
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - [10,11,12,13]"));
    struct err err = ERR_INIT;
    static const char body[] = "\x10\0\0\0{\"method\":\"add\"}[1,2,3,4]";
    const struct record_header each = {
        .type = RECORD_CALL, .call = 2, .rank = RECORD_GROUP, .dispatch = RECORD_ALL_TO_ALL};
    assert_int_equal(ws_client_record_copy(p.client, &each, body, sizeof body - 1, &err), 0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 2 - [11,13,15,17]"));
    const struct record_header one = {.type = RECORD_CALL, .call = 3, .rank = 2};
    static const char get[] = "\x16\0\0\0{\"method\":\"get_value\"}";
    assert_int_equal(ws_client_record_copy(p.client, &one, get, sizeof get - 1, &err), 0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 3 2 15"));
    gateway_peer_call(&p, 4, "{\"method\":\"no_such\"}", "[]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 4 "));
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(end_worker(i, SIGTERM), 0);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).workers == 0);
    gateway_peer_hang_up(&p);
}

// Calls until there is a result. On a busy machine, the process may be as silent as one that is stopped.
static void add_nothing(struct gateway_peer *p, uint32_t *id)
{
    char result[32], error[32];
    do {
        ++*id;
        snprintf(result, sizeof result, "RESULT %u - [", *id);
        snprintf(error, sizeof error, "ERROR %u ", *id);
        gateway_peer_call(p, *id, "{\"method\":\"add\"}", "[0]"); // waits for it
        GATEWAY_UNTIL(&f, gateway_peer_got(p, result) || gateway_peer_got(p, error));
    } while (!gateway_peer_got(p, result));
}

// Stopped as by a debugger or a frozen cgroup: its kernel goes on taking bytes, nobody reads them. Its calls fail, and
// when it goes on it is as if it had come back.
static void stop_a_real_process(const char *address)
{
    const struct gateway_config limits = {.ping_ms = 500, .exit_wait_ms = 20};
    struct gateway_peer p;
    uint32_t id = 0;
    char error[64];
    int status = 0;
    gateway_fixture_stop(&f);
    gateway_fixture_start(&f, &limits, address);
    gateway_fixture_group(&f, 1, 1, NULL);
    start_worker(1, 0);
    gateway_client(&p, &f);
    add_nothing(&p, &id);
    kill(pids[0], SIGSTOP);
    assert_int_equal(waitpid(pids[0], &status, WUNTRACED), pids[0]); // it may run on for a moment
    assert_true(WIFSTOPPED(status));
    gateway_peer_call(&p, ++id, "{\"method\":\"add\"}", "[1]");
    snprintf(error, sizeof error, "ERROR %u 0 {\"code\":\"UNAVAILABLE\"", id);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, error));
    assert_true(
        gateway_peer_got(&p, "lost its connection (no answer to a ping) while add() was pending; it may have run"));
    kill(pids[0], SIGCONT);
    add_nothing(&p, &id);
    assert_int_equal(end_worker(0, SIGTERM), 0);
    gateway_peer_hang_up(&p);
}

static void test_real_process_that_is_stopped(void **state)
{
    char address[64];
    (void)state;
    stop_a_real_process(NULL);
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-workers-%d.sock", (int)getpid());
    stop_a_real_process(address);
}

// It is there before the watch has told of its group: it dials until it is let in.
static void test_real_process_dials_again(void **state)
{
    struct gateway_peer p;
    (void)state;
    start_worker(1, 0);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).refused == 1);
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"get_value\"}", "");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - [0]"));
    end_worker(0, SIGKILL);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).workers == 0);
    gateway_peer_hang_up(&p);
}

#define WORKER_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(test_welcome),
        WORKER_TEST(test_a_ticket_is_good_once),
        WORKER_TEST(test_welcome_that_was_lost),
        WORKER_TEST(test_welcome_that_came_too_late),
        WORKER_TEST(test_tickets_that_are_refused),
        WORKER_TEST(test_the_group_comes_later),
        WORKER_TEST(test_restart),
        WORKER_TEST(test_broken_protocol),
        WORKER_TEST(test_real_processes),
        WORKER_TEST(test_real_process_that_is_stopped),
        WORKER_TEST(test_real_process_dials_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
