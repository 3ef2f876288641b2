// SPDX-License-Identifier: Apache-2.0
// A client with a thread of its own, used by several threads.
#include "tests/unit/sdk/c/sdk_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 200, MIDDLE = 1 << 20 };

static void open_threaded(struct fixture *f)
{
    cadre_client_options o = options_of(f);
    o.threaded = 1;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
}

// Nothing of the client is called meanwhile.
static void until_came(struct fixture *f, const char *text, size_t n)
{
    TURN_UNTIL(sched_yield(), sdk_proxy_saw(&f->proxy, text) >= n, text);
}

static uint64_t begin(struct fixture *f, const char *method, cadre_client_json args)
{
    cadre_client_request r = request_of(method);
    uint64_t id = 0;
    r.args = args;
    r.keep = 1;
    assert_int_equal(cadre_client_start(f->client, &r, &id, &f->error), CADRE_CLIENT_OK);
    return id;
}

static void takes(struct fixture *f, uint64_t id, const char *text)
{
    cadre_client_json result;
    cadre_client_error error;
    void *memory;
    assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, &error), CADRE_CLIENT_OK);
    assert_int_equal(result.len, strlen(text));
    assert_memory_equal(result.text, text, result.len);
    cadre_client_give_back(f->client, memory);
}

// The client has noticed it: a call sent before that is lost with the old connection.
static void proxy_is_replaced(struct fixture *f)
{
    sdk_proxy_stop(&f->proxy);
    TURN_UNTIL(sched_yield(), !cadre_client_connected(f->client), "the end of the connection");
    sdk_proxy_start(&f->proxy, NULL, NULL);
}

static void calls_go_out_although_nobody_waits(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    begin(f, "forget_me", J("[1]"));
    until_came(f, "forget_me", 1);
    begin(f, "forget_me", J("[2]")); // while the thread sleeps, too
    until_came(f, "forget_me", 2);
}

static void a_call_that_is_waited_for_next_is_sent_by_who_waits(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    for (int i = 0; i < CALLS; i++) {
        cadre_client_request r = request_of("echo");
        uint64_t id;
        r.args = J("[1]");
        r.keep = r.lazy = 1;
        assert_int_equal(cadre_client_start(f->client, &r, &id, &f->error), CADRE_CLIENT_OK);
        takes(f, id, "[1]");
    }
}

static void *caller(void *arg)
{
    struct fixture *f = arg;
    uint64_t ids[CALLS];
    char texts[CALLS][32];
    size_t ready;
    for (int i = 0; i < CALLS; i++) {
        cadre_client_request r = request_of("echo");
        snprintf(texts[i], sizeof texts[i], "[%d,\"%lx\"]", i, (unsigned long)pthread_self() & 0xffff);
        r.args = (cadre_client_json){texts[i], strlen(texts[i])};
        r.keep = 1;
        assert_int_equal(cadre_client_start(f->client, &r, &ids[i], NULL), CADRE_CLIENT_OK);
        if (i % 3 == 0)
            takes(f, ids[i], texts[i]);
    }
    uint64_t last[] = {ids[CALLS - 1], ids[CALLS - 2]};
    assert_int_equal(cadre_client_wait_for(f->client, last, 2, 2, -1, &ready, NULL), CADRE_CLIENT_OK);
    assert_int_equal(ready, 2);
    for (int i = 0; i < CALLS; i++)
        if (i % 3)
            takes(f, ids[i], texts[i]);
    return NULL;
}

static void threads_use_it_at_the_same_time(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    open_threaded(f);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, caller, f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(cadre_client_pending(f->client), 0);
}

static void only_calls_that_are_watched_are_told(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    uint64_t first = begin(f, "echo", J("[1]")), second = begin(f, "echo", J("[2]"));
    takes(f, begin(f, "echo", J("[3]")), "[3]");
    assert_true(cadre_client_watch(f->client, second));
    assert_int_equal(cadre_client_next(f->client, -1), second);
    assert_int_equal(cadre_client_next(f->client, 0), 0);
    assert_true(cadre_client_watch(f->client, first)); // which is answered
    assert_int_equal(cadre_client_next(f->client, -1), first);
    takes(f, first, "[1]");
    takes(f, second, "[2]");
    assert_false(cadre_client_watch(f->client, second));
}

static void a_watched_call_is_told_also_if_its_answer_was_taken_first(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    uint64_t watched = begin(f, "echo", J("[1]")), late = begin(f, "echo", J("[2]"));
    assert_true(cadre_client_watch(f->client, watched));
    takes(f, watched, "[1]");
    takes(f, begin(f, "echo", J("[3]")), "[3]"); // late is answered, too
    assert_true(cadre_client_watch(f->client, late));
    takes(f, late, "[2]");
    assert_int_equal(cadre_client_next(f->client, 0), watched);
    assert_int_equal(cadre_client_next(f->client, 0), late);
    assert_int_equal(cadre_client_next(f->client, 0), 0);
    watched = begin(f, "echo", J("[4]"));
    assert_true(cadre_client_watch(f->client, watched));
    takes(f, watched, "[4]"); // the client is closed with a notice
}

static void a_wait_that_is_over_leaves_the_call_alone(void **state)
{
    struct fixture *f = *state;
    cadre_client_json result;
    void *memory = f;
    open_threaded(f);
    uint64_t id = begin(f, "mute", J("[]"));
    assert_int_equal(cadre_client_take(f->client, id, 10, &result, &memory, &f->error), CADRE_CLIENT_OK);
    assert_null(memory);
    assert_false(cadre_client_done(f->client, id));
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, &f->error), CADRE_CLIENT_CANCELED);
    cadre_client_give_back(f->client, memory);
}

static void *waiter(void *arg)
{
    struct fixture *f = arg;
    cadre_client_json result;
    cadre_client_error *error = calloc(1, sizeof *error);
    void *memory;
    uint64_t id = begin(f, "mute", J("[7]"));
    assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, error), CADRE_CLIENT_CANCELED);
    cadre_client_give_back(f->client, memory);
    return error;
}

static void *watcher(void *arg)
{
    struct fixture *f = arg;
    return cadre_client_next(f->client, -1) ? f : NULL;
}

static void a_call_that_is_waited_for_next_is_sent_while_another_thread_waits(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = request_of("echo");
    cadre_client_error *error;
    pthread_t waits;
    uint64_t id;
    open_threaded(f);
    pthread_create(&waits, NULL, waiter, f);
    until_came(f, "[7]", 1);
    for (int i = 0; i < CALLS; i++) {
        r.args = J("[1]");
        r.keep = r.lazy = 1;
        assert_int_equal(cadre_client_start(f->client, &r, &id, &f->error), CADRE_CLIENT_OK);
        takes(f, id, "[1]");
    }
    cadre_client_shut(f->client);
    pthread_join(waits, (void **)&error);
    free(error);
}

// The thread of the client turns the loop meanwhile, in which nothing can happen.
static void one_that_was_refused_and_rests_can_be_used_again(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    cadre_client_json result;
    void *memory;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.address = f->proxy.url;
    o.ns = "denied";
    o.threaded = 1;
    open_with(f, &o);
    until_came(f, "upgrade /v1/namespaces/denied", 1);
    for (int i = 0; i < 2; i++) { // the first answer shows that the client knows of the refusal
        uint64_t id = begin(f, "echo", J("[1]"));
        while (!cadre_client_done(f->client, id))
            sched_yield();
        assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, &f->error), CADRE_CLIENT_FORBIDDEN);
        cadre_client_give_back(f->client, memory);
        assert_false(cadre_client_connected(f->client));
    }
}

static void who_waits_is_told_that_it_is_shut(void **state)
{
    struct fixture *f = *state;
    cadre_client_json result;
    cadre_client_error *error;
    pthread_t waits, watches;
    void *memory, *found;
    open_threaded(f);
    uint64_t answered = begin(f, "echo", J("[1]"));
    while (!cadre_client_done(f->client, answered))
        sched_yield();
    pthread_create(&watches, NULL, watcher, f);
    pthread_create(&waits, NULL, waiter, f);
    until_came(f, "[7]", 1);
    cadre_client_shut(f->client);
    cadre_client_shut(f->client);
    pthread_join(waits, (void **)&error);
    pthread_join(watches, &found);
    assert_null(found);
    assert_true(error->may_have_run);
    free(error);
    takes(f, answered, "[1]"); // answers stay
    cadre_client_request r = request_of("echo");
    r.keep = 1;
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_CANCELED);
    assert_int_equal(cadre_client_take(f->client, 99, -1, &result, &memory, &f->error), CADRE_CLIENT_INVALID);
}

static void what_was_not_sent_has_not_run(void **state)
{
    struct fixture *f = *state;
    cadre_client_json result;
    void *memory;
    cadre_client_options o = options_of(f);
    o.address = "unix:/nobody/listens";
    o.threaded = 1;
    open_with(f, &o);
    uint64_t id = begin(f, "echo", J("[1]"));
    cadre_client_shut(f->client);
    assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, &f->error), CADRE_CLIENT_CANCELED);
    cadre_client_give_back(f->client, memory);
    assert_false(f->error.may_have_run);
}

static void closes(void *ctx, int connected, const cadre_client_error *why)
{
    struct fixture *f = ctx;
    cadre_client_request r = request_of("echo");
    cadre_client_json result;
    void *memory;
    uint64_t id;
    if (!connected)
        return;
    assert_null(why);
    r.keep = 1;
    assert_int_equal(cadre_client_start(f->client, &r, &id, NULL), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_take(f->client, id, -1, &result, &memory, NULL), CADRE_CLIENT_OK);
    cadre_client_give_back(f->client, memory);
    cadre_client_shut(f->client);
}

static void a_callback_uses_and_shuts_it(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.address = f->proxy.url;
    o.threaded = 1;
    o.on_connection = closes;
    o.ctx = f;
    open_with(f, &o);
    while (cadre_client_next(f->client, -1))
        ;
    assert_int_equal(cadre_client_connected(f->client), 0);
}

static void shuts(void *ctx, const cadre_client_answer *a)
{
    struct fixture *f = ctx;
    assert_null(a->error);
    cadre_client_shut(f->client);
}

static void counts(void *ctx, int connected, const cadre_client_error *why)
{
    (void)why;
    atomic_fetch_add((atomic_int *)ctx, connected);
}

static void it_is_not_shut_inside_done(void **state)
{
    struct fixture *f = *state;
    atomic_int connections = 0;
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.address = f->proxy.url;
    o.threaded = 1;
    o.on_connection = counts;
    o.ctx = &connections;
    open_with(f, &o);
    cadre_client_request r = request_of("echo");
    r.args = J("[1]");
    r.done = shuts;
    r.ctx = f;
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
    takes(f, begin(f, "echo", J("[2]")), "[2]");
    proxy_is_replaced(f);
    takes(f, begin(f, "echo", J("[3]")), "[3]");
    TURN_UNTIL(sched_yield(), atomic_load(&connections) == 2, "callbacks of connections");
    cadre_client_shut(f->client);
}

static void answers_that_are_kept_leave_room_for_calls(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    uint64_t ids[10];
    o.threaded = 1;
    o.max_calls = 2;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
    for (int i = 0; i < 10; i++) {
        ids[i] = begin(f, "echo", J("[1]"));
        while (!cadre_client_done(f->client, ids[i]))
            sched_yield();
    }
    begin(f, "mute", J("[]"));
    begin(f, "mute", J("[]"));
    cadre_client_request r = request_of("echo");
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_LIMIT);
    takes(f, ids[9], "[1]");
}

static void an_urgent_call_overtakes_a_thousand(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = request_of("echo");
    uint64_t id;
    open_threaded(f);
    for (int i = 0; i < 1001; i++) // as many as are sent at a time, and one more
        begin(f, "mute", J("[]"));
    r.args = J("[1]");
    r.keep = r.urgent = 1;
    assert_int_equal(cadre_client_start(f->client, &r, &id, &f->error), CADRE_CLIENT_OK);
    takes(f, id, "[1]");
    assert_int_equal(cadre_client_pending(f->client), 1001);
    cadre_client_shut(f->client);
}

static void a_full_client_has_room_for_urgent_calls(void **state)
{
    enum { KEPT = 10, ROOM = 65535 - 16 };
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    cadre_client_request r = request_of("mute");
    o.threaded = 1;
    o.max_calls = 65535;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
    for (int i = 0; i < KEPT; i++) {
        uint64_t id = begin(f, "echo", J("[1]"));
        while (!cadre_client_done(f->client, id))
            sched_yield();
    }
    r.keep = 1;
    for (int i = KEPT; i < ROOM; i++)
        assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_LIMIT);
    assert_string_equal(f->error.message,
                        "65509 calls have no answer yet and 10 answers are kept; a client has room for 65535");
    r.urgent = 1;
    for (int i = 0; i < 16; i++)
        assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_OK);
    r.urgent = 0;
    assert_int_equal(cadre_client_start(f->client, &r, NULL, &f->error), CADRE_CLIENT_LIMIT);
    cadre_client_shut(f->client);
}

// Arguments whose copy does not go on until the test lets it: the kernel tells the test that a thread reads the second
// half, and the thread waits until the test has filled it.
static struct {
    int faults;
    char *args;
    char rest[MIDDLE];
} gate;

static void *starts_gated(void *arg)
{
    struct fixture *f = arg;
    cadre_client_request r = request_of("length");
    uint64_t id;
    r.args = (cadre_client_json){gate.args, 2 * MIDDLE};
    r.keep = 1;
    return (void *)(intptr_t)cadre_client_start(f->client, &r, &id, NULL);
}

// Returns when the thread is in the middle of its copy.
static pthread_t gate_open(struct fixture *f)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffd_msg fault;
    pthread_t thread;
    gate.faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (gate.faults < 0)
        skip(); // a container may forbid it
    gate.args = mmap(NULL, 2 * MIDDLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(gate.args, MAP_FAILED);
    memset(gate.args, ' ', MIDDLE);
    gate.args[0] = '[';
    struct uffdio_register half = {.range = {(uintptr_t)gate.args + MIDDLE, MIDDLE},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};
    assert_int_equal(ioctl(gate.faults, UFFDIO_API, &api), 0);
    assert_int_equal(ioctl(gate.faults, UFFDIO_REGISTER, &half), 0);
    assert_int_equal(pthread_create(&thread, NULL, starts_gated, f), 0);
    assert_int_equal(read(gate.faults, &fault, sizeof fault), sizeof fault);
    return thread;
}

static cadre_client_code gate_close(pthread_t thread)
{
    struct uffdio_copy rest = {.dst = (uintptr_t)gate.args + MIDDLE, .src = (uintptr_t)gate.rest, .len = MIDDLE};
    void *code;
    memset(gate.rest, ' ', MIDDLE);
    gate.rest[MIDDLE - 1] = ']';
    assert_int_equal(ioctl(gate.faults, UFFDIO_COPY, &rest), 0);
    pthread_join(thread, &code);
    close(gate.faults);
    munmap(gate.args, 2 * MIDDLE);
    return (cadre_client_code)(intptr_t)code;
}

static void others_call_while_one_copies_long_arguments(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    takes(f, begin(f, "echo", J("[0]")), "[0]");
    pthread_t thread = gate_open(f);
    takes(f, begin(f, "echo", J("[1]")), "[1]");
    assert_int_equal(gate_close(thread), CADRE_CLIENT_OK);
    until_came(f, "length", 1);
}

static void the_connection_changes_while_one_copies_long_arguments(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    takes(f, begin(f, "echo", J("[0]")), "[0]");
    pthread_t thread = gate_open(f);
    proxy_is_replaced(f);
    takes(f, begin(f, "echo", J("[1]")), "[1]");
    assert_int_equal(gate_close(thread), CADRE_CLIENT_OK);
    until_came(f, "length", 1);
}

static void one_that_copies_long_arguments_is_told_that_it_is_shut(void **state)
{
    struct fixture *f = *state;
    open_threaded(f);
    pthread_t thread = gate_open(f);
    cadre_client_shut(f->client);
    assert_int_equal(gate_close(thread), CADRE_CLIENT_CANCELED);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(calls_go_out_although_nobody_waits),
        CASE(a_call_that_is_waited_for_next_is_sent_by_who_waits),
        CASE(threads_use_it_at_the_same_time),
        CASE(only_calls_that_are_watched_are_told),
        CASE(a_watched_call_is_told_also_if_its_answer_was_taken_first),
        CASE(a_wait_that_is_over_leaves_the_call_alone),
        CASE(a_call_that_is_waited_for_next_is_sent_while_another_thread_waits),
        CASE(one_that_was_refused_and_rests_can_be_used_again),
        CASE(who_waits_is_told_that_it_is_shut),
        CASE(what_was_not_sent_has_not_run),
        CASE(a_callback_uses_and_shuts_it),
        CASE(it_is_not_shut_inside_done),
        CASE(answers_that_are_kept_leave_room_for_calls),
        CASE(an_urgent_call_overtakes_a_thousand),
        CASE(a_full_client_has_room_for_urgent_calls),
        CASE(others_call_while_one_copies_long_arguments),
        CASE(the_connection_changes_while_one_copies_long_arguments),
        CASE(one_that_copies_long_arguments_is_told_that_it_is_shut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
