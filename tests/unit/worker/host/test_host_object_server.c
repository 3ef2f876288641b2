// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/wire/ref.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/worker/host/bytes_sent.h"
#include "worker/host/object_fetch.h"
#include "worker/host/object_server.h"
#include "worker/host/peer_wire.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECRET "0123456789abcdef"
#define BIG ((size_t)5 << 20)

struct fixture {
    struct loop *loop;
    struct object_store *store;
    struct object_server *server;
    char at[64];
};

// Does what a thread of another process would do.
struct fetcher {
    struct object_fetch what;
    char *out;
    struct region *values;
    atomic_bool canceled, over;
    int code;
    struct err err;
    pthread_t thread;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct err err = ERR_INIT;
    f->loop = loop_new();
    f->store = object_store_new(64 << 20, 3);
    f->server =
        object_server_new(&(struct object_server_config){.loop = f->loop, .store = f->store, .local = true}, &err);
    assert_non_null(f->server);
    object_server_secret(f->server, SECRET);
    snprintf(f->at, sizeof f->at, "127.0.0.1:%d", object_server_port(f->server));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    object_server_free(f->server);
    loop_free(f->loop);
    object_store_free(f->store);
    free(f);
    return 0;
}

static uint64_t keep(const struct fixture *f, size_t len)
{
    const struct kept_object *o;
    struct err err = ERR_INIT;
    struct blob *b = blob_new(len, NULL);
    for (size_t i = 0; i < len; i++)
        b->data[i] = (char)(i * 31 >> 3);
    assert_int_equal(object_store_put(f->store, &(struct kept_object){.blob = b}, f, &o, &err), 0);
    blob_unref(b);
    return o->id;
}

static void *run(void *ctx)
{
    struct fetcher *b = ctx;
    b->code = object_fetch(&b->what, b->out, &b->values, &b->err);
    atomic_store(&b->over, true);
    return NULL;
}

static int64_t in_an_hour(void)
{
    return clock_wall_ms(&clock_system) + 3600 * 1000;
}

static void begin(struct fixture *f, struct fetcher *b, uint64_t id, size_t bytes, int64_t until, const char *key)
{
    *b = (struct fetcher){
        .what = {.at = f->at, .id = id, .bytes = bytes, .until = until, .key = key, .owner = "rank 2 of ml/actor"}};
    b->what.canceled = &b->canceled;
    b->out = xmalloc(bytes + 1);
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
}

static void end(struct fixture *f, struct fetcher *b)
{
    while (!atomic_load(&b->over))
        loop_run_once(f->loop, 10);
    pthread_join(b->thread, NULL);
}

static int get(struct fixture *f, struct fetcher *b, uint64_t id, size_t bytes)
{
    char key[REF_KEY_SIZE];
    int64_t until = in_an_hour();
    ref_key(SECRET, id, until, key);
    begin(f, b, id, bytes, until, key);
    end(f, b);
    return b->code;
}

static void whoever_shows_the_key_gets_the_object(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    uint64_t big = keep(f, BIG), small = keep(f, 3), nothing = keep(f, 0), before = bytes_sent();
    assert_int_equal(get(f, &b, big, BIG), 0);
    assert_memory_equal(b.out, object_store_get(f->store, big)->blob->data, BIG);
    free(b.out);
    assert_int_equal(get(f, &b, small, 3), 0);
    assert_memory_equal(b.out, object_store_get(f->store, small)->blob->data, 3);
    free(b.out);
    assert_int_equal(get(f, &b, nothing, 0), 0);
    free(b.out);
    assert_true(bytes_sent() - before >= BIG + 3);
}

static void many_are_served_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct fetcher b[8];
    char key[REF_KEY_SIZE];
    uint64_t id = keep(f, BIG);
    int64_t until = in_an_hour();
    ref_key(SECRET, id, until, key);
    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        begin(f, &b[i], id, BIG, until, key);
    for (size_t i = 0; i < ARRAY_LEN(b); i++) {
        end(f, &b[i]);
        assert_int_equal(b[i].code, 0);
        assert_memory_equal(b[i].out, object_store_get(f->store, id)->blob->data, BIG);
        free(b[i].out);
    }
}

static void what_is_dropped_meanwhile_arrives_whole(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    char key[REF_KEY_SIZE];
    uint64_t id = keep(f, BIG);
    int64_t until = in_an_hour();
    struct blob *same = blob_ref(object_store_get(f->store, id)->blob);
    ref_key(SECRET, id, until, key);
    uint64_t before = bytes_sent();
    begin(f, &b, id, BIG, until, key);
    while (bytes_sent() == before)
        loop_run_once(f->loop, 10);
    assert_true(object_store_drop(f->store, id));
    end(f, &b);
    assert_int_equal(b.code, 0);
    assert_memory_equal(b.out, same->data, BIG);
    blob_unref(same);
    free(b.out);
}

static void nobody_else_does(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    char key[REF_KEY_SIZE];
    uint64_t id = keep(f, 3), other = keep(f, 3);
    int64_t until = in_an_hour();
    ref_key("another secret", id, until, key);
    begin(f, &b, id, 3, until, key);
    end(f, &b);
    assert_int_equal(b.code, ERR_FORBIDDEN);
    assert_non_null(strstr(b.err.msg, "rank 2 of ml/actor"));
    free(b.out);
    ref_key(SECRET, other, until, key); // the key of another object
    begin(f, &b, id, 3, until, key);
    end(f, &b);
    assert_int_equal(b.code, ERR_FORBIDDEN);
    free(b.out);
    until = clock_wall_ms(&clock_system) - 1;
    ref_key(SECRET, id, until, key);
    begin(f, &b, id, 3, until, key);
    end(f, &b);
    assert_int_equal(b.code, ERR_FORBIDDEN);
    assert_non_null(strstr(b.err.msg, "expired"));
    free(b.out);
}

static void what_was_freed_is_said_to_be(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    uint64_t id = keep(f, 3);
    assert_true(object_store_drop(f->store, id));
    assert_int_equal(get(f, &b, id, 3), ERR_NOT_FOUND);
    assert_non_null(strstr(b.err.msg, "freed"));
    free(b.out);
}

static void a_length_that_is_not_the_reference_s_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    uint64_t id = keep(f, 30);
    assert_int_equal(get(f, &b, id, 3), ERR_INVALID);
    free(b.out);
}

static void an_owner_that_is_gone_is_unreachable(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    uint64_t id = keep(f, 3);
    object_server_free(f->server);
    f->server = NULL;
    char key[REF_KEY_SIZE];
    ref_key(SECRET, id, in_an_hour(), key);
    begin(f, &b, id, 3, in_an_hour(), key);
    end(f, &b);
    assert_int_equal(b.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(b.err.msg, "OwnerUnreachable: rank 2 of ml/actor"));
    assert_non_null(strstr(b.err.msg, f->at));
    free(b.out);
}

static void an_owner_that_dies_on_the_way_is_named(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    char key[REF_KEY_SIZE];
    size_t huge = (size_t)48 << 20; // more than the sockets can buffer
    uint64_t id = keep(f, huge);
    int64_t until = in_an_hour();
    ref_key(SECRET, id, until, key);
    uint64_t before = bytes_sent();
    begin(f, &b, id, huge, until, key);
    while (bytes_sent() == before)
        loop_run_once(f->loop, 10);
    object_server_free(f->server);
    f->server = NULL;
    end(f, &b);
    assert_int_equal(b.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(b.err.msg, "was lost after"));
    free(b.out);
}

// Listens in place of the object server. The loop has nothing to do.
static int listen_at(struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(f->at, sizeof f->at, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

// Without a device, it has asked for bytes.
static void a_form_that_was_not_asked_for_is_refused(void **state)
{
    struct fixture *f = *state;
    char key[PEER_KEY_LEN + 1], question[PEER_REQUEST_LEN], answer[PEER_ANSWER_LEN + DEVICE_HANDLE_SIZE + 10] = "";
    memset(key, 'a', sizeof key - 1);
    key[PEER_KEY_LEN] = '\0';
    for (enum peer_form form = PEER_VALUES; form <= PEER_HANDLE; form++) {
        struct fetcher b;
        int listener = listen_at(f);
        size_t handle = form == PEER_HANDLE ? DEVICE_HANDLE_SIZE : 0;
        begin(f, &b, 1, 14, in_an_hour(), key);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_int_equal(recv(fd, question, sizeof question, MSG_WAITALL), sizeof question);
        peer_answer_write(&(struct peer_answer){form, 0, 14}, answer);
        memcpy(answer + PEER_ANSWER_LEN + handle, "\2\0\0\0\0\0\0\0{}", 10); // the head of a document without tensors
        (void)send(fd, answer, PEER_ANSWER_LEN + handle + 10, MSG_NOSIGNAL);
        pthread_join(b.thread, NULL);
        assert_int_equal(b.code, ERR_PROTO);
        assert_non_null(strstr(b.err.msg, "rank 2 of ml/actor gives the object in a form"));
        free(b.out);
        close(fd);
        close(listener);
    }
}

static void a_call_that_is_canceled_does_not_wait(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    char key[REF_KEY_SIZE] = "";
    memset(key, 'a', sizeof key - 1);
    begin(f, &b, 1, 3, in_an_hour(), key); // the loop does not run, so nobody answers
    atomic_store(&b.canceled, true);
    pthread_join(b.thread, NULL);
    assert_int_equal(b.code, ERR_CANCELED);
    free(b.out);
}

static void nonsense_gets_an_error_and_no_object(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)object_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char noise[200] = "GET / HTTP/1.1\r\n", answer[100];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    keep(f, 3);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, noise, 88, 0), 88);
    TURN_UNTIL(loop_run_once(f->loop, 10),
               recv(fd, answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT) > (ssize_t)PEER_ANSWER_LEN, "");
    assert_int_equal(answer[4], -ERR_PROTO);
    close(fd);
}

static void connections_that_ask_for_nothing_make_room(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)object_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fds[OBJECT_SERVER_PEERS_MAX + 10];
    uint64_t small = keep(f, 3);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (const struct sockaddr *)&to, sizeof to), 0);
        loop_run_once(f->loop, 0); // only a few connections can wait to be accepted
    }
    assert_int_equal(get(f, &b, small, 3), 0);
    free(b.out);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

// The limit becomes the number of descriptors that are open already, so the next accept4() fails.
static void without_descriptors_it_sleeps_until_there_are_some(void **state)
{
    struct fixture *f = *state;
    struct fetcher b;
    struct rlimit limit, few;
    struct pollfd work = {.fd = loop_fd(f->loop), .events = POLLIN};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)object_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t small = keep(f, 3);
    unsigned turns = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), next = dup(fd);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = (rlim_t)next;
    loop_run_once(f->loop, 0); // from now on the loop would notice a connection
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(poll(&work, 1, -1), 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (turns < 1000 && poll(&work, 1, 0) == 1) {
        loop_run_once(f->loop, 0);
        turns++;
    }
    assert_in_range(turns, 1, 999);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(get(f, &b, small, 3), 0);
    free(b.out);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whoever_shows_the_key_gets_the_object),
        TEST(many_are_served_at_a_time),
        TEST(what_is_dropped_meanwhile_arrives_whole),
        TEST(nobody_else_does),
        TEST(what_was_freed_is_said_to_be),
        TEST(a_length_that_is_not_the_reference_s_is_noticed),
        TEST(an_owner_that_is_gone_is_unreachable),
        TEST(an_owner_that_dies_on_the_way_is_named),
        TEST(a_form_that_was_not_asked_for_is_refused),
        TEST(a_call_that_is_canceled_does_not_wait),
        TEST(nonsense_gets_an_error_and_no_object),
        TEST(connections_that_ask_for_nothing_make_room),
        TEST(without_descriptors_it_sleeps_until_there_are_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
