// SPDX-License-Identifier: Apache-2.0
// Ranks meet at the port of the first one. Both sides are in this process: a loop with an object server, and threads
// that meet.
#include "worker/host/rendezvous.h"

#include "common/base/mem.h"
#include "common/wire/peer_key.h"
#include "worker/host/object_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET "0123456789abcdef"
enum { RANKS = 3, LIMIT_MS = 600 * 1000, SHORT_LIMIT_MS = 300 };

struct fixture {
    struct loop *loop;
    struct object_store *store;
    struct object_server *server;
    struct rendezvous *rendezvous[RANKS]; // for three processes
    char at[64];
    int asked;
    bool silent;        // no proxy answers
    bool late;          // a proxy answers a question of an earlier rendezvous with the same id
    const char *secret; // the one that the proxy knows
};

struct member {
    struct rendezvous *rendezvous;
    struct rendezvous_list list;
    atomic_bool canceled, over;
    bool fails; // it makes no communicator of the links
    int links[RANKS], code;
    struct err err;
    pthread_t thread;
};

static const int ranks[RANKS] = {4, 5, 6};

static void answer(struct fixture *f, const struct rendezvous_question *q, int64_t until)
{
    char text[PEER_TEXT_SIZE], key[PEER_KEY_SIZE];
    peer_rendezvous_text(q->id, q->index, until, text);
    peer_key(f->secret, text, key);
    rendezvous_place(f->rendezvous[q->index], q->id, until, f->at, key);
}

static void ask(void *ctx, const struct rendezvous_question *q)
{
    struct fixture *f = ctx;
    f->asked++;
    assert_int_equal(q->rank, ranks[0]);
    assert_string_equal(q->group, "");
    if (!f->silent)
        answer(f, q, q->until);
    if (f->late)
        answer(f, q, q->until - 1);
}

static struct rendezvous *process_of(struct fixture *f, int index, uint32_t attempt)
{
    return rendezvous_new(&(struct rendezvous_config){
        .loop = f->loop, .attempt = attempt, .rank = ranks[index], .world = 8, .ask = ask, .ctx = f});
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct err err = ERR_INIT;
    f->secret = SECRET;
    f->loop = loop_new();
    f->store = object_store_new(1 << 20, 3);
    for (int i = 0; i < RANKS; i++)
        f->rendezvous[i] = process_of(f, i, 1);
    f->server = object_server_new(
        &(struct object_server_config){
            .loop = f->loop, .store = f->store, .rendezvous = f->rendezvous[0], .local = true},
        &err);
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
    for (int i = 0; i < RANKS; i++)
        rendezvous_free(f->rendezvous[i]);
    object_store_free(f->store);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void *meet(void *ctx)
{
    struct member *h = ctx;
    h->code = rendezvous_meet(h->rendezvous, &h->list, h->links, &h->err);
    atomic_store(&h->over, true);
    return NULL;
}

static struct member member_of(struct fixture *f, int index, int64_t limit_ms)
{
    struct member h = {.rendezvous = f->rendezvous[index]};
    h.list = (struct rendezvous_list){.ranks = ranks, .n = RANKS, .index = index, .limit_ms = limit_ms};
    return h;
}

static void start(struct member *h)
{
    h->list.canceled = &h->canceled;
    assert_int_equal(pthread_create(&h->thread, NULL, meet, h), 0);
}

static void begin(struct fixture *f, struct member *h, int index, int64_t limit_ms)
{
    *h = member_of(f, index, limit_ms);
    start(h);
}

// It will make no communicator.
static void begin_in_vain(struct fixture *f, struct member *h, int index, int64_t limit_ms)
{
    *h = member_of(f, index, limit_ms);
    h->fails = true;
    start(h);
}

static void turn_until_met(struct fixture *f, struct member *h)
{
    while (!atomic_load(&h->over))
        loop_run_once(f->loop, 10);
}

static void end(struct fixture *f, struct member *h)
{
    turn_until_met(f, h);
    pthread_join(h->thread, NULL);
    if (h->code == 0)
        rendezvous_end(h->rendezvous, &h->list, !h->fails);
}

// Bytes that the others send to the first arrive there.
static void check_links(struct member *h)
{
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(h[i].code, 0);
    for (int i = 1; i < RANKS; i++) {
        char byte = (char)('a' + i), got = 0;
        assert_true(h[0].links[i] >= 0);
        assert_int_equal(write(h[i].links[0], &byte, 1), 1);
        while (read(h[0].links[i], &got, 1) != 1)
            usleep(100);
        assert_int_equal(got, byte);
        close(h[i].links[0]);
        close(h[0].links[i]);
    }
}

static void all_meet(struct fixture *f)
{
    struct member h[RANKS];
    for (int i = RANKS; i-- > 0;)
        begin(f, &h[i], i, LIMIT_MS);
    for (int i = 0; i < RANKS; i++)
        end(f, &h[i]);
    check_links(h);
}

static void all_are_connected_to_the_first(void **state)
{
    for (int round = 0; round < 2; round++) // the next round begins from zero
        all_meet(*state);
}

static void who_has_not_come_has_no_link(void **state)
{
    struct fixture *f = *state;
    struct member first, second;
    begin(f, &second, 1, LIMIT_MS);
    end(f, &second);
    begin(f, &first, 0, SHORT_LIMIT_MS);
    end(f, &first);
    assert_int_equal(first.code, 0);
    assert_true(first.links[1] >= 0);
    assert_int_equal(first.links[2], -1);
    close(first.links[1]);
    close(second.links[0]);
}

// The new process does not know how often the others have met. With restartPolicy Worker, old and new ranks cannot make
// a communicator together.
static void a_process_of_a_newer_attempt_does_not_meet_those_that_run_on(void **state)
{
    struct fixture *f = *state;
    struct member first, second;
    rendezvous_free(f->rendezvous[1]);
    f->rendezvous[1] = process_of(f, 1, 2);
    begin(f, &second, 1, LIMIT_MS);
    end(f, &second);
    assert_int_equal(second.code, 0); // the other rank has come
    begin(f, &first, 0, SHORT_LIMIT_MS);
    end(f, &first);
    assert_int_equal(first.code, 0);
    assert_int_equal(first.links[1], -1);
    close(second.links[0]);
}

static void a_first_that_nobody_knows_is_waited_for_until_the_limit(void **state)
{
    struct fixture *f = *state;
    struct member h;
    f->silent = true;
    do { // until the loop took a turn within the limit
        begin(f, &h, 1, SHORT_LIMIT_MS);
        end(f, &h);
        assert_int_equal(h.code, ERR_TIMEOUT);
        assert_non_null(strstr(h.err.msg, "rank 4, the first of the list, was not found within 300 ms"));
    } while (!f->asked);
}

static void a_late_answer_does_not_count(void **state)
{
    struct fixture *f = *state;
    f->late = true;
    all_meet(f);
}

static void another_secret_is_refused(void **state)
{
    struct fixture *f = *state;
    struct member h;
    f->secret = "of another attempt";
    begin(f, &h, 2, LIMIT_MS);
    end(f, &h);
    assert_int_equal(h.code, ERR_FORBIDDEN);
    assert_non_null(strstr(h.err.msg, "does not take the proof"));
}

static void a_first_that_has_no_secret_yet_is_asked_again(void **state)
{
    struct fixture *f = *state;
    struct member first, second;
    object_server_free(f->server);
    struct err err = ERR_INIT;
    f->server = object_server_new(
        &(struct object_server_config){
            .loop = f->loop, .store = f->store, .rendezvous = f->rendezvous[0], .local = true},
        &err);
    snprintf(f->at, sizeof f->at, "127.0.0.1:%d", object_server_port(f->server));
    begin(f, &second, 1, LIMIT_MS);
    for (int before = f->asked; f->asked < before + 2;)
        loop_run_once(f->loop, 10);
    object_server_secret(f->server, SECRET);
    end(f, &second);
    assert_int_equal(second.code, 0);
    begin(f, &first, 0, SHORT_LIMIT_MS);
    end(f, &first);
    assert_true(first.links[1] >= 0);
    close(first.links[1]);
    close(second.links[0]);
}

static void a_cancel_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    struct member first, second;
    f->silent = true;
    begin(f, &first, 0, LIMIT_MS);
    begin(f, &second, 1, LIMIT_MS);
    atomic_store(&first.canceled, true);
    atomic_store(&second.canceled, true);
    end(f, &first);
    end(f, &second);
    assert_int_equal(first.code, ERR_CANCELED);
    assert_int_equal(second.code, ERR_CANCELED);
}

struct moment {
    atomic_bool asked, is_over;
};

static bool until_all_have_come(void *ctx)
{
    struct moment *m = ctx;
    atomic_store(&m->asked, true);
    while (!atomic_load(&m->is_over))
        usleep(100);
    return true;
}

// The first rank stops waiting when the moment is over. It has already begun.
static void begin_watched(struct fixture *f, struct member *h, struct moment *m)
{
    *h = member_of(f, 0, LIMIT_MS);
    h->list.stop = until_all_have_come;
    h->list.ctx = m;
    start(h);
    while (!atomic_load(&m->asked))
        loop_run_once(f->loop, 10);
}

static void after_some_were_canceled_all_meet(void **state)
{
    struct fixture *f = *state;
    struct member first, second;
    begin_in_vain(f, &second, 1, LIMIT_MS);
    end(f, &second);
    begin_in_vain(f, &first, 0, LIMIT_MS);
    atomic_store(&first.canceled, true);
    end(f, &first);
    assert_int_equal(first.code, ERR_CANCELED);
    close(second.links[0]); // this thread was canceled while it waited for the others
    all_meet(f);
    all_meet(f);
}

static bool counts(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    return false;
}

// Between two looks of the first one, it has taken all who have come.
static void turn_until_taken(struct fixture *f, struct member *h, atomic_int *looks)
{
    for (int before = atomic_load(looks); !atomic_load(&h->over) && atomic_load(looks) < before + 2;)
        loop_run_once(f->loop, 10);
}

// The first one has not looked yet who has come: it must not take the connection of a member that gave up.
static void who_gave_up_before_the_first_came_has_to_come_again(void **state)
{
    struct fixture *f = *state;
    struct member gone, h[RANKS];
    atomic_int looks = 0;
    begin_in_vain(f, &gone, 1, LIMIT_MS);
    end(f, &gone);
    close(gone.links[0]);
    h[0] = member_of(f, 0, LIMIT_MS);
    h[0].list.stop = counts;
    h[0].list.ctx = &looks;
    start(&h[0]);
    begin(f, &h[2], 2, LIMIT_MS);
    end(f, &h[2]);
    turn_until_taken(f, &h[0], &looks);
    assert_false(atomic_load(&h[0].over)); // not all have come
    begin(f, &h[1], 1, LIMIT_MS);
    end(f, &h[1]);
    end(f, &h[0]);
    check_links(h);
}

// It has lost the message that all have agreed. The others have used its communicator, and found it broken.
static void who_has_not_heard_that_all_agreed_meets_them_again(void **state)
{
    struct fixture *f = *state;
    struct member h[RANKS];
    for (int i = 0; i < RANKS; i++) {
        h[i] = member_of(f, i, LIMIT_MS);
        h[i].fails = i == 1;
        start(&h[i]);
    }
    for (int i = 0; i < RANKS; i++)
        end(f, &h[i]);
    check_links(h);
    all_meet(f);
    all_meet(f);
}

// The second one of each member succeeds. Then the number of the first one is free again.
static void two_threads_with_the_same_list_make_two_communicators(void **state)
{
    struct fixture *f = *state;
    struct member canceled, failed[RANKS], h[RANKS];
    struct moment early = {.asked = false}, late = {.asked = false};
    begin_watched(f, &canceled, &early);
    begin_watched(f, &h[0], &late);
    atomic_store(&early.is_over, true);
    end(f, &canceled);
    assert_int_equal(canceled.code, ERR_CANCELED);
    for (int i = 1; i < RANKS; i++) {
        begin_in_vain(f, &failed[i], i, LIMIT_MS);
        turn_until_met(f, &failed[i]);
        begin(f, &h[i], i, LIMIT_MS);
        end(f, &h[i]);
    }
    atomic_store(&late.is_over, true);
    end(f, &h[0]);
    check_links(h);
    for (int i = 1; i < RANKS; i++) {
        end(f, &failed[i]);
        close(failed[i].links[0]);
    }
    all_meet(f);
    all_meet(f);
}

static void who_comes_before_the_first_stops_waiting_has_a_link(void **state)
{
    struct fixture *f = *state;
    struct member h[RANKS];
    struct moment m = {.asked = false};
    begin_watched(f, &h[0], &m);
    for (int i = 1; i < RANKS; i++)
        begin(f, &h[i], i, LIMIT_MS);
    for (int i = 1; i < RANKS; i++)
        end(f, &h[i]);
    atomic_store(&m.is_over, true);
    end(f, &h[0]);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(h[i].code, 0);
    for (int i = 1; i < RANKS; i++) {
        close(h[i].links[0]);
        assert_int_equal(close(h[0].links[i]), 0);
    }
}

static void meshes_of_the_object_go_first(void **state)
{
    struct fixture *f = *state;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct mesh got;
    const struct mesh_dim eight[] = {{"dp", 8}}, four[] = {{"dp", 2}, {"tp", 4}}, wrong[] = {{"x", 3}};
    const struct mesh own[] = {{"a", eight, 1}, {"b", four, 2}}, object[] = {{"b", eight, 1}, {"c", wrong, 1}};
    struct rendezvous *rv = f->rendezvous[0];
    assert_int_equal(rendezvous_mesh(rv, NULL, 8, &a, &got, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "the group has no mesh"));
    rendezvous_meshes(rv, own, 2, true);
    assert_int_equal(rendezvous_mesh(rv, NULL, 8, &a, &got, &err), 0);
    assert_string_equal(got.name, "a");
    rendezvous_meshes(rv, object, 2, false);
    assert_int_equal(rendezvous_mesh(rv, NULL, 8, &a, &got, &err), 0);
    assert_string_equal(got.name, "b");
    assert_int_equal(got.n_dims, 1);
    assert_int_equal(rendezvous_mesh(rv, "a", 8, &a, &got, &err), 0);
    assert_int_equal(rendezvous_mesh(rv, "c", 8, &a, &got, &err), ERR_INVALID);
    arena_done(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_connected_to_the_first),
        TEST(who_has_not_come_has_no_link),
        TEST(a_process_of_a_newer_attempt_does_not_meet_those_that_run_on),
        TEST(a_first_that_nobody_knows_is_waited_for_until_the_limit),
        TEST(a_late_answer_does_not_count),
        TEST(another_secret_is_refused),
        TEST(a_first_that_has_no_secret_yet_is_asked_again),
        TEST(a_cancel_ends_the_wait),
        TEST(after_some_were_canceled_all_meet),
        TEST(who_gave_up_before_the_first_came_has_to_come_again),
        TEST(who_has_not_heard_that_all_agreed_meets_them_again),
        TEST(two_threads_with_the_same_list_make_two_communicators),
        TEST(who_comes_before_the_first_stops_waiting_has_a_link),
        TEST(meshes_of_the_object_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
