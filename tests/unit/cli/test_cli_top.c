// SPDX-License-Identifier: Apache-2.0
// kubectl cadre top and info where the operator has two replicas, and the API server's proxy leads to each in turn:
// kubectl is tests/unit/cli/fake_kubectl.py.
#include "tests/unit/cli/fake_kubectl.h"
#include "tests/unit/support/cli_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake_kubectl kubectl;
static struct cli_world world; // with the workers, and calls that have ended
static struct gateway_fixture other;
static struct gateway_peer caller; // of the other one, where a call waits

#define LEAD_TO(...) \
    fake_kubectl_lead_to(&kubectl, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void call_replica(const struct gateway_fixture *f, const char *name)
{
    gateway_router(f->gateway)->stats.replica = name;
}

static void replicas_are(const char *names)
{
    router_replicas(gateway_router(world.gateway.gateway), names);
    router_replicas(gateway_router(other.gateway), names);
}

static void start_other(void)
{
    gateway_fixture_start(&other, NULL, NULL);
    gateway_fixture_group(&other, 2, 1, NULL);
    gateway_client(&caller, &other);
    gateway_peer_call(&caller, 1, "{\"method\":\"add\"}", "[1]");
    GATEWAY_UNTIL(&other, gateway_router(other.gateway)->n_calls == 1);
}

static int start(void **state)
{
    (void)state;
    fake_kubectl_start(&kubectl);
    cli_world_start(&world, 2);
    cli_world_line(&world, "call llama add 1 -n ml --server @ --token alice");
    assert_int_equal(world.status, 0);
    start_other();
    world.other = &other;
    replicas_are("[\"op-a\",\"op-b\"]");
    call_replica(&world.gateway, "op-a");
    call_replica(&other, "op-b");
    LEAD_TO(world.gateway.port, other.port);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    gateway_peer_hang_up(&caller);
    gateway_fixture_stop(&other);
    cli_world_stop(&world);
    assert_int_equal(fake_kubectl_left_overs(&kubectl), 0);
    fake_kubectl_stop(&kubectl);
    return 0;
}

static void shows(const char *line, const char *const want[], size_t n)
{
    cli_world_line(&world, line);
    if (world.status != 0)
        fail_msg("%s: %d %s", line, world.status, buf_str(&world.err));
    for (size_t i = 0; i < n; i++)
        if (!strstr(buf_str(&world.out), want[i]))
            fail_msg("no \"%s\": %s", want[i], buf_str(&world.out));
}

#define SHOWS(line, ...) \
    shows(line, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void both_are_asked(void **state)
{
    (void)state;
    SHOWS("top llama --interval 50ms", " add ", " other ", "Calls through replicas op-", " (all replicas).\n");
    SHOWS("top llama --interval 50ms -o json", "{\"group\":\"llama\",\"method\":\"add\"",
          "\"method\":\"other\",\"callsPerSecond\":0.000,\"bytesPerSecond\":0,\"ended\":0,\"errors\":0,"
          "\"totalErrors\":0,\"inFlight\":1}");
    assert_string_equal(buf_str(&world.err), "");
}

// Each rank tells both replicas; one of them may hear it later.
static void a_transfer_of_weights_is_shown_once(void **state)
{
    struct gateway_peer rank;
    (void)state;
    gateway_worker(&rank, &other, 1, 1);
    gateway_peer_send(&rank, RECORD_PROGRESS, 0, 1, "{\"done\":1500,\"bytes\":4000}");
    GATEWAY_UNTIL(&other, router_group(gateway_router(other.gateway), GATEWAY_UID)->ranks[1].member->transfer.bytes);
    SHOWS("top llama --interval 50ms",
          "\nllama gets weights: 1.5k of 4.0k bytes (38%), 0 of 1 ranks have all of theirs; slowest: rank 1\n");
    SHOWS("top llama --interval 50ms -o json", ",{\"group\":\"llama\",\"transfer\":{\"done\":1500,\"bytes\":4000,"
                                               "\"ranks\":1,\"complete\":0,\"slowest\":1}}]\n");
    gateway_peer_hang_up(&rank);
}

static void one_that_no_connection_leads_to_is_named(void **state)
{
    (void)state;
    LEAD_TO(world.gateway.port);
    SHOWS("top llama --interval 50ms", " add ", "Calls through replica op-a.\n",
          "Without calls through replica op-b, which did not answer: none of 18 connections reached it\n");
    assert_null(strstr(buf_str(&world.out), " other "));
    cli_world_line(&world, "top llama --interval 50ms -o json");
    assert_non_null(strstr(buf_str(&world.out), "\"add\""));
    assert_non_null(strstr(buf_str(&world.err), "Without calls through replica op-b"));
}

static void what_goes_wrong_on_the_way_is_told(void **state)
{
    (void)state;
    LEAD_TO(world.gateway.port, world.gateway.port, world.gateway.port, 1); // nobody listens at the last one
    SHOWS("top llama --interval 50ms", " add ", "Calls through replica op-a.\n",
          " connections reached it, and some failed: ");
}

static void one_that_is_alone_says_so_or_that_it_does_not_know(void **state)
{
    (void)state;
    LEAD_TO(world.gateway.port);
    replicas_are("[\"op-a\"]");
    SHOWS("top llama --interval 50ms", "Calls through replica op-a (the only one).\n");
    replicas_are(NULL);
    SHOWS("top llama --interval 50ms", "Calls through replica op-a; there may be other replicas.\n");
}

static void info_names_whom_the_ranks_are_connected_to(void **state)
{
    (void)state;
    LEAD_TO(other.port);
    SHOWS("info llama", "Ready:    no (0 of 2 ranks are connected to op-b)\n");
}

static int listen_without_a_word(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

// Its kernel still takes connections.
static void a_replica_that_hangs_does_not_keep_a_command(void **state)
{
    int port, fd = listen_without_a_word(&port);
    (void)state;
    // The first is only asked whether it is there.
    LEAD_TO(world.gateway.port, port, port, world.gateway.port);
    SHOWS("info llama", "(2 of 2 ranks are connected to op-a)\n");
    SHOWS("call llama get_value", "[1, 2]\n");
    close(fd);
}

static void a_group_that_is_not_there(void **state)
{
    (void)state;
    cli_world_line(&world, "top nobody --interval 50ms");
    assert_int_equal(world.status, 1);
    assert_non_null(strstr(buf_str(&world.err), "Error (NOT_FOUND): "));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(both_are_asked),
        T(a_transfer_of_weights_is_shown_once),
        T(one_that_no_connection_leads_to_is_named),
        T(what_goes_wrong_on_the_way_is_told),
        T(one_that_is_alone_says_so_or_that_it_does_not_know),
        T(info_names_whom_the_ranks_are_connected_to),
        T(a_replica_that_hangs_does_not_keep_a_command),
        T(a_group_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
