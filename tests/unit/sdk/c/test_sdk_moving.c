// SPDX-License-Identifier: Apache-2.0
// A client whose proxy has several addresses. Some are dead in one way or another. The one that is killed is a
// process of its own.
#include "sdk/c/client/client.h"

#include "common/base/str.h"
#include "tests/unit/sdk/c/sdk_case.h"
#include "tests/unit/support/fake_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG ((size_t)6 << 20) // more than two sockets take, less than the client lets wait

enum { MANY = 64 };

static struct fixture *f;
static pid_t doomed; // the proxy at 127.0.0.2
static int64_t port;
static char url[64];
static struct outcome kept[8]; // of calls that may end with their client

static void be_the_doomed_one(int out)
{
    struct sdk_proxy proxy;
    sdk_proxy_init(&proxy);
    proxy.listen = "127.0.0.2:0";
    sdk_proxy_start(&proxy, NULL, NULL);
    const char *colon = strrchr(proxy.url, ':') + 1;
    if (write(out, colon, strlen(colon)) < 0)
        abort();
    rmdir(proxy.dir);
    close(out);
    for (;;)
        pause();
}

static int begin(void **state)
{
    int fds[2];
    char text[16] = "";
    assert_int_equal(pipe(fds), 0);
    doomed = fork();
    if (doomed == 0)
        be_the_doomed_one(fds[1]);
    close(fds[1]);
    assert_true(read(fds[0], text, sizeof text - 1) > 0);
    close(fds[0]);
    assert_true(str_to_i64(text, &port));
    snprintf(url, sizeof url, "ws://operator.test:%d", (int)port);
    fake_names = (struct fake_names){.addresses = "127.0.0.2 127.0.0.3"};
    memset(kept, 0, sizeof kept);
    setup(state);
    f = *state;
    return 0;
}

static void kill_it(void)
{
    if (doomed <= 0)
        return;
    kill(doomed, SIGKILL);
    waitpid(doomed, NULL, 0);
    doomed = -1;
}

static int finish(void **state)
{
    kill_it();
    return teardown(state);
}

static void start_other(void)
{
    static char listen[64];
    snprintf(listen, sizeof listen, "127.0.0.3:%d", (int)port);
    f->proxy.listen = listen;
    sdk_proxy_start(&f->proxy, NULL, NULL);
}

static void open_by_name(void)
{
    cadre_client_options o = options_of(f);
    o.address = url;
    open_with(f, &o);
}

static void until_it_has_come(void) // the answer is in the socket, and nobody reads it
{
    struct pollfd p = {.fd = loop_fd(f->client->loop), .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void be_away_until_it_has_ended(void) // as if the caller had something else to do
{
    kill_it();
    until_it_has_come();
    poll(NULL, 0, 20);
}

static void assert_in_doubt(const struct outcome *o, const char *method)
{
    char wanted[64];
    assert_int_equal(o->code, CADRE_CLIENT_UNAVAILABLE);
    assert_int_equal(o->error.may_have_run, 1);
    snprintf(wanted, sizeof wanted, "while %s() was pending: it may have run", method);
    assert_non_null(strstr(o->error.message, wanted));
    assert_non_null(strstr(o->error.message, "127.0.0.2:"));
}

static void after_a_death_between_calls_the_next_goes_to_another_replica(void **state)
{
    (void)state;
    start_other();
    open_by_name();
    assert_string_equal(call_method(f, "echo", "[1]"), "[1]");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL"), 0);
    be_away_until_it_has_ended();
    assert_string_equal(call_method(f, "echo", "[2]"), "[2]");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL"), 1);
}

static void what_was_sent_fails_by_name_and_what_was_not_moves_over(void **state)
{
    struct outcome mute = {0}, echo = {0};
    (void)state;
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    start_method(f, "mute", &mute);
    cadre_client_process(f->client);
    kill_it();
    wait_for(f, &mute);
    start_method(f, "echo", &echo);
    assert_in_doubt(&mute, "mute");
    wait_for(f, &echo);
    assert_string_equal(echo.text, "[]");
}

static void stop_it(void)
{
    int status;
    kill(doomed, SIGSTOP);
    assert_int_equal(waitpid(doomed, &status, WUNTRACED), doomed);
    assert_true(WIFSTOPPED(status));
}

// Sockets that are full take more now and then, when the kernel packs what lies in them. A call that got through then
// is in doubt; the next one may wait behind the long one.
static size_t start_until_three_wait(struct outcome echo[MANY])
{
    const struct uplink *u = f->client->uplinks.now;
    uint64_t ids[MANY];
    for (size_t i = 0; i < MANY; i++) {
        cadre_client_request r = request_of("echo");
        char args[32];
        r.args = (cadre_client_json){args, (size_t)snprintf(args, sizeof args, "[%zu]", i)};
        ids[i] = start(f, r, &echo[i]);
        TURN_UNTIL(cadre_client_process(f->client), u->n_sent == 2 + i, "");
        struct blob *waits = i >= 2 ? record_writer_body(ws_client_records(u->ws), (uint32_t)ids[i - 2]) : NULL;
        blob_unref(waits);
        if (waits) // they begin in order
            return i + 1;
    }
    fail_msg("of %d calls no three wait in the queue", MANY);
    return 0;
}

// The long one fills the sockets of a replica that reads nothing; not a byte of the others gets through.
static void calls_in_the_queue_of_a_connection_that_is_lost_were_not_sent(void **state)
{
    struct outcome lengthy = {0}, echo[MANY] = {{0}};
    cadre_client_request r = request_of("big");
    char *args = calloc(1, LONG + 1);
    (void)state;
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    stop_it();
    memset(args, ' ', LONG);
    args[0] = '[', args[LONG - 1] = ']';
    r.args = (cadre_client_json){args, LONG};
    start(f, r, &lengthy);
    size_t n = start_until_three_wait(echo);
    kill_it();
    wait_for(f, &lengthy);
    assert_in_doubt(&lengthy, "big");
    for (size_t i = 0; i < n; i++)
        wait_for(f, &echo[i]);
    for (size_t i = 0; i < n - 3; i++)
        assert_in_doubt(&echo[i], "echo");
    for (size_t i = n - 3; i < n; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "[%zu]", i);
        assert_string_equal(echo[i].text, wanted);
    }
    assert_int_equal(sdk_proxy_saw(&f->proxy, "big"), 0);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL"), 3);
    free(args);
}

static void half_of_an_answer_is_none(void **state)
{
    struct outcome big = {0};
    cadre_client_request r = request_of("big");
    (void)state;
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    r.args = J("[60000000]");
    start(f, r, &big);
    cadre_client_process(f->client);
    until_it_has_come();
    kill_it();
    wait_for(f, &big);
    assert_in_doubt(&big, "big");
    assert_string_equal(call_method(f, "echo", NULL), "[]");
}

static void an_answer_that_has_come_counts_whatever_became_of_the_replica(void **state)
{
    struct outcome echo = {0};
    (void)state;
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    start_method(f, "echo", &echo);
    cadre_client_process(f->client);
    if (!echo.n)
        until_it_has_come();
    kill_it();
    wait_for(f, &echo);
    assert_string_equal(echo.text, "[]");
}

// It takes connections and says nothing.
static void a_replica_that_is_stopped_is_not_waited_for(void **state)
{
    (void)state;
    stop_it();
    start_other();
    open_by_name();
    assert_string_equal(call_method(f, "echo", NULL), "[]");
}

static void a_call_to_a_replica_that_stops_fails_soon_and_the_next_one_moves_over(void **state)
{
    struct outcome mute = {0};
    cadre_client_request r = request_of("mute");
    (void)state;
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    r.timeout_ms = 0;
    start(f, r, &mute);
    cadre_client_process(f->client);
    stop_it();
    wait_for(f, &mute);
    assert_in_doubt(&mute, "mute");
    assert_non_null(strstr(mute.error.message, "no answer to a ping"));
    assert_string_equal(call_method(f, "echo", NULL), "[]");
}

static void open_again_and_call(void)
{
    cadre_client_close(f->client);
    fake_names.lookups = 0;
    open_by_name();
    assert_string_equal(call_method(f, "echo", NULL), "[]");
}

// All addresses in one go. A process that stands still in between gives the attempt up, and looks up the name again.
static void reaches_the_other_with_one_lookup(void)
{
    TURN_UNTIL(open_again_and_call(), fake_names.lookups == 1, "");
}

static void an_address_that_refuses_costs_no_pause(void **state)
{
    (void)state;
    kill_it();
    start_other();
    reaches_the_other_with_one_lookup();
}

// Its queue of connections is full: it drops what comes, as a node that is dead does.
static void an_address_that_says_nothing_at_all_is_passed(void **state)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fds[4], listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    (void)state;
    kill_it();
    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &sa.sin_addr), 1);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(listen(listener, 0), 0);
    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&sa, sizeof sa);
    }
    start_other();
    reaches_the_other_with_one_lookup();
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    close(listener);
}

static void addresses_are_remembered_for_a_name_server_that(enum fake_names_state state)
{
    start_other();
    open_by_name();
    call_method(f, "echo", NULL);
    fake_names.state = state;
    be_away_until_it_has_ended();
    assert_string_equal(call_method(f, "echo", "[1]"), "[1]");
    assert_true(fake_names.lookups > 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL"), 1);
}

static void addresses_are_remembered_for_a_name_server_that_knows_none(void **state)
{
    (void)state;
    addresses_are_remembered_for_a_name_server_that(FAKE_NAMES_FAIL);
}

static void addresses_are_remembered_for_a_name_server_that_is_silent(void **state)
{
    (void)state;
    addresses_are_remembered_for_a_name_server_that(FAKE_NAMES_HANG);
}

static void the_address_of_a_new_replica_is_found(void **state)
{
    struct outcome echo = {0};
    (void)state;
    fake_names.addresses = "127.0.0.2";
    open_by_name();
    call_method(f, "echo", NULL);
    be_away_until_it_has_ended();
    start_method(f, "echo", &echo);
    TURN_UNTIL(turn_a_little(f), fake_names.lookups >= 4, "");
    assert_int_equal(echo.n, 0);
    start_other();
    fake_names.addresses = "127.0.0.3";
    wait_for(f, &echo);
    assert_string_equal(echo.text, "[]");
}

// ---- a replica that stops

static uint64_t both_run(const char *last_line, struct outcome *mute)
{
    open_by_name();
    call_method(f, "echo", NULL);
    uint64_t id = start_method(f, "mute", mute);
    start_other();
    assert_string_equal(call_method(f, "goodbye", NULL), "null");
    assert_string_equal(call_method(f, "echo", last_line), last_line);
    return id;
}

static void a_call_in_flight_holds_no_new_one_back_from_the_next_replica(void **state)
{
    struct outcome *mute = &kept[0];
    (void)state;
    both_run("[1]", mute);
    assert_int_equal(mute->n, 0);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL"), 1);
    assert_int_equal(cadre_client_pending(f->client), 1);
}

static void what_a_replica_that_stops_has_is_answered_by_it(void **state)
{
    struct outcome *mute = &kept[0];
    (void)state;
    uint64_t id = both_run("[1]", mute);
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    wait_for(f, mute);
    assert_int_equal(mute->code, CADRE_CLIENT_CANCELED);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CANCEL"), 0);
    TURN_UNTIL(turn_a_little(f), list_empty(&f->client->uplinks.leaving), ""); // nobody needs it any more
}

static void the_end_of_a_replica_that_stops_fails_its_own_calls_only(void **state)
{
    struct outcome *first = &kept[0], *second = &kept[1];
    (void)state;
    both_run("[1]", first);
    uint64_t id = start_method(f, "mute", second);
    until_saw(f, "mute", 1);
    size_t connections = sdk_proxy_saw(&f->proxy, "HELLO");
    kill_it();
    wait_for(f, first);
    assert_in_doubt(first, "mute");
    assert_int_equal(second->n, 0);
    assert_string_equal(call_method(f, "echo", "[2]"), "[2]");
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    wait_for(f, second);
    assert_int_equal(second->code, CADRE_CLIENT_CANCELED);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "HELLO"), connections); // it was the same all the time
}

static void a_client_that_is_closed_says_so_to_a_replica_that_stops_as_well(void **state)
{
    struct outcome *mute = &kept[0];
    (void)state;
    both_run("[1]", mute);
    cadre_client_close(f->client);
    f->client = NULL;
    assert_int_equal(mute->n, 1);
    assert_int_equal(mute->code, CADRE_CLIENT_CANCELED);
    assert_int_equal(mute->error.may_have_run, 1);
    TURN_UNTIL(poll(NULL, 0, 5), sdk_proxy_saw(&f->proxy, "closed 1000 the client ends"), ""); // it has not moved
}

// Each time the only other address is a replica's that has just said goodbye, too.
static void replicas_that_stop_one_after_the_other_are_left_one_after_the_other(void **state)
{
    struct outcome *mute = kept;
    (void)state;
    start_other();
    open_by_name();
    uint64_t first = start_method(f, "mute", &mute[0]);
    for (size_t i = 0; i < UPLINKS_LEAVING_MAX; i++) {
        if (i > 0)
            start_method(f, "mute", &mute[i]);
        assert_string_equal(call_method(f, "goodbye", NULL), "null");
    }
    start_method(f, "mute", &mute[5]);
    assert_string_equal(call_method(f, "goodbye", NULL), "null");
    start_method(f, "echo", &mute[6]); // no fifth one leaves: it waits ...
    for (int i = 0; i < 50; i++)
        cadre_client_process(f->client), poll(NULL, 0, 1);
    assert_int_equal(mute[6].n, 0);
    assert_int_equal(cadre_client_cancel(f->client, first), CADRE_CLIENT_OK);
    wait_for(f, &mute[6]); // ... for one of them
    assert_string_equal(mute[6].text, "[]");
    for (size_t i = 1; i < 6; i++)
        assert_int_equal(mute[i].n, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        T(after_a_death_between_calls_the_next_goes_to_another_replica),
        T(what_was_sent_fails_by_name_and_what_was_not_moves_over),
        T(calls_in_the_queue_of_a_connection_that_is_lost_were_not_sent),
        T(half_of_an_answer_is_none),
        T(an_answer_that_has_come_counts_whatever_became_of_the_replica),
        T(a_replica_that_is_stopped_is_not_waited_for),
        T(a_call_to_a_replica_that_stops_fails_soon_and_the_next_one_moves_over),
        T(an_address_that_refuses_costs_no_pause),
        T(an_address_that_says_nothing_at_all_is_passed),
        T(addresses_are_remembered_for_a_name_server_that_knows_none),
        T(addresses_are_remembered_for_a_name_server_that_is_silent),
        T(the_address_of_a_new_replica_is_found),
        T(a_call_in_flight_holds_no_new_one_back_from_the_next_replica),
        T(what_a_replica_that_stops_has_is_answered_by_it),
        T(the_end_of_a_replica_that_stops_fails_its_own_calls_only),
        T(a_client_that_is_closed_says_so_to_a_replica_that_stops_as_well),
        T(replicas_that_stop_one_after_the_other_are_left_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
