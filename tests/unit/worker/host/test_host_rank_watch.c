// SPDX-License-Identifier: Apache-2.0
// Ranks that watch each other. All are in this process: a loop with an object server, and a thread for each rank. The
// threads meet and wait. A rank is lost if its connection ends without a goodbye.
#include "worker/host/rank_watch.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/peer_key.h"
#include "worker/collective/star.h"
#include "worker/host/object_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SECRET "0123456789abcdef"
enum { RANKS = 3, LIMIT_MS = 600 * 1000 };

struct fixture;

static const int everybody[RANKS] = {0, 1, 2};

struct watcher {
    struct fixture *f;
    struct rank_watch_members who;
    struct rendezvous *rendezvous;
    struct rank_watch watch;
    int64_t limit_ms;
    sem_t may_agree, may_die; // for a rank that dies
    atomic_bool held, met, over;
    int code; // of rank_watch_meet(), and then of rank_watch_wait()
    struct err err;
    pthread_t thread;
};

struct fixture {
    struct loop *loop;
    struct object_store *store;
    struct object_server *server;
    struct watcher ranks[RANKS];
    uint32_t first; // the rank where the others meet it
    char at[64];
};

static void ask(void *ctx, const struct rendezvous_question *q)
{
    struct fixture *f = ctx;
    char text[PEER_TEXT_SIZE], key[PEER_KEY_SIZE];
    assert_int_equal(q->rank, f->first);
    peer_rendezvous_text(q->id, q->index, q->until, text);
    peer_key(SECRET, text, key);
    rendezvous_place(f->ranks[f->ranks[f->first].who.ranks[q->index]].rendezvous, q->id, q->until, f->at, key);
}

static void serve_rendezvous_of(struct fixture *f, int rank)
{
    struct err err = ERR_INIT;
    f->server = object_server_new(
        &(struct object_server_config){
            .loop = f->loop, .store = f->store, .rendezvous = f->ranks[rank].rendezvous, .local = true},
        &err);
    assert_non_null(f->server);
    object_server_secret(f->server, SECRET);
    snprintf(f->at, sizeof f->at, "127.0.0.1:%d", object_server_port(f->server));
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->store = object_store_new(1 << 20, 3);
    for (int i = 0; i < RANKS; i++) {
        f->ranks[i] =
            (struct watcher){.f = f, .who = {everybody, RANKS}, .watch = RANK_WATCH_INIT, .limit_ms = LIMIT_MS};
        sem_init(&f->ranks[i].may_agree, 0, 0);
        sem_init(&f->ranks[i].may_die, 0, 0);
        f->ranks[i].rendezvous = rendezvous_new(&(struct rendezvous_config){
            .loop = f->loop, .attempt = 1, .rank = i, .world = RANKS, .ask = ask, .ctx = f});
    }
    serve_rendezvous_of(f, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    object_server_free(f->server);
    for (int i = 0; i < RANKS; i++)
        rendezvous_free(f->ranks[i].rendezvous);
    object_store_free(f->store);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void *watch(void *ctx)
{
    struct watcher *w = ctx;
    w->code = rank_watch_meet(&w->watch, w->rendezvous, &w->who, w->limit_ms, &w->err);
    atomic_store(&w->met, true);
    if (w->code == 0)
        w->code = rank_watch_wait(&w->watch, &w->err);
    atomic_store(&w->over, true);
    return NULL;
}

// A process that dies when the others have met it and `may_die` is posted.
static void *die(void *ctx)
{
    struct watcher *w = ctx;
    const char *const names[] = {"rank 0", "rank 1", "rank 2"};
    const struct err none = ERR_INIT;
    struct rendezvous_list list = {.id = str_hash("watch", 5) ^ str_hash((const char *)everybody, sizeof everybody),
                                   .n = RANKS,
                                   .index = 2,
                                   .limit_ms = LIMIT_MS,
                                   .canceled = &w->watch.canceled};
    int links[RANKS], link;
    w->code = rendezvous_meet(w->rendezvous, &list, links, &w->err);
    if (w->code < 0)
        return NULL;
    link = links[0];
    struct star *star =
        star_new(&(struct star_config){.index = 2, .n = RANKS, .names = names, .links = links, .limit_ms = LIMIT_MS});
    atomic_store(&w->held, true);
    sem_wait(&w->may_agree);
    w->code = star_agree(star, &none, &w->err);
    atomic_store(&w->met, true);
    sem_wait(&w->may_die);
    shutdown(link, SHUT_RDWR);
    star_free(star);
    atomic_store(&w->over, true);
    return NULL;
}

static void begin(struct watcher *w, void *(*run)(void *ctx))
{
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void until(struct watcher *w, atomic_bool *what)
{
    while (!atomic_load(what))
        loop_run_once(w->f->loop, 10);
}

static void end(struct watcher *w)
{
    until(w, &w->over);
    pthread_join(w->thread, NULL);
}

static void lose_rank_2(struct fixture *f)
{
    for (int i = 0; i < RANKS; i++) {
        atomic_store(&f->ranks[i].over, false);
        begin(&f->ranks[i], i == 2 ? die : watch);
    }
    sem_post(&f->ranks[2].may_agree);
    sem_post(&f->ranks[2].may_die);
    for (int i = 0; i < RANKS; i++)
        end(&f->ranks[i]);
    assert_int_equal(f->ranks[2].code, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->ranks[i].code, ERR_GONE);
        assert_string_equal(f->ranks[i].err.msg, "rank 2 was lost: its process has ended, or its node");
    }
}

static void all_learn_who_was_lost(void **state)
{
    struct fixture *f = *state;
    lose_rank_2(f);
    for (int i = 0; i < 2; i++)
        rank_watch_end(&f->ranks[i].watch);
}

// After each loss, another process takes the place of rank 2.
static void after_a_loss_all_watch_each_other_again(void **state)
{
    struct fixture *f = *state;
    lose_rank_2(f);
    lose_rank_2(f);
    for (int i = 0; i < RANKS; i++) {
        atomic_store(&f->ranks[i].met, false);
        atomic_store(&f->ranks[i].over, false);
        begin(&f->ranks[i], watch);
    }
    for (int i = 0; i < RANKS; i++)
        until(&f->ranks[i], &f->ranks[i].met);
    for (int i = RANKS - 1; i >= 0; i--) {
        rank_watch_end(&f->ranks[i].watch);
        end(&f->ranks[i]);
        assert_int_equal(f->ranks[i].code, 0); // the losses have no effect any more
    }
}

// In any order. Rank 0 is in the middle.
static void who_ends_is_not_lost(void **state)
{
    struct fixture *f = *state;
    static const int order[RANKS] = {2, 0, 1};
    for (int i = 0; i < RANKS; i++)
        begin(&f->ranks[i], watch);
    for (int i = 0; i < RANKS; i++)
        until(&f->ranks[i], &f->ranks[i].met);
    for (int i = 0; i < RANKS; i++) {
        struct watcher *w = &f->ranks[order[i]];
        rank_watch_end(&w->watch);
        end(w);
        assert_int_equal(w->code, 0);
    }
}

static void the_end_does_not_wait_for_ranks_that_do_not_come(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++)
        begin(&f->ranks[i], watch);
    for (int i = 0; i < 2; i++)
        rank_watch_end(&f->ranks[i].watch);
    for (int i = 0; i < 2; i++) {
        end(&f->ranks[i]);
        assert_true(f->ranks[i].code == ERR_CANCELED || f->ranks[i].code == ERR_GONE);
    }
    begin(&f->ranks[2], watch); // its watch was ended before it begins
    rank_watch_end(&f->ranks[2].watch);
    end(&f->ranks[2]);
    assert_true(f->ranks[2].code == ERR_CANCELED);
}

// Ranks 0 and 1 agree, and wait for rank 2, which has joined and says nothing.
static void begin_to_agree(struct fixture *f)
{
    begin(&f->ranks[0], watch);
    begin(&f->ranks[1], watch);
    begin(&f->ranks[2], die);
    until(&f->ranks[2], &f->ranks[2].held);
    for (int i = 0; i < 2; i++) {
        struct rank_watch *w = &f->ranks[i].watch;
        for (bool agrees = false; !agrees;) {
            loop_run_once(f->loop, 1);
            pthread_mutex_lock(&w->mutex);
            agrees = w->agreeing;
            pthread_mutex_unlock(&w->mutex);
        }
    }
}

static void a_rank_that_ends_while_all_agree_is_not_lost(void **state)
{
    struct fixture *f = *state;
    struct watcher *zero = &f->ranks[0], *one = &f->ranks[1], *two = &f->ranks[2];
    begin_to_agree(f);
    rank_watch_end(&one->watch);
    end(one);
    assert_int_equal(one->code, ERR_CANCELED);
    sem_post(&two->may_agree);
    until(zero, &zero->met);
    until(two, &two->met);
    assert_int_equal(two->code, 0);
    sem_post(&two->may_die);
    end(two);
    end(zero);
    assert_string_equal(zero->err.msg, "rank 2 was lost: its process has ended, or its node");
    rank_watch_end(&zero->watch);
}

static void nobody_is_reported_when_the_first_rank_ends_while_all_agree(void **state)
{
    struct fixture *f = *state;
    begin_to_agree(f);
    rank_watch_end(&f->ranks[0].watch);
    end(&f->ranks[0]);
    assert_int_equal(f->ranks[0].code, ERR_CANCELED);
    end(&f->ranks[1]);
    assert_int_equal(f->ranks[1].code, ERR_GONE); // the reason of rank 0 is only for the log
    rank_watch_end(&f->ranks[1].watch);
    sem_post(&f->ranks[2].may_agree);
    sem_post(&f->ranks[2].may_die);
    end(&f->ranks[2]);
    assert_int_equal(f->ranks[2].code, ERR_GONE);
}

static void who_does_not_come_is_named(void **state)
{
    struct fixture *f = *state;
    f->ranks[0].limit_ms = 1;
    begin(&f->ranks[0], watch);
    end(&f->ranks[0]);
    assert_int_equal(f->ranks[0].code, ERR_TIMEOUT);
    assert_string_equal(f->ranks[0].err.msg, "rank 1 did not arrive within 1 ms");
    rank_watch_end(&f->ranks[0].watch);
}

// Rank 0 is not in the list. The others meet at rank 2.
static void ranks_of_a_list_watch_each_other(void **state)
{
    static const int two[] = {2, 1};
    struct fixture *f = *state;
    f->first = 2;
    object_server_free(f->server);
    serve_rendezvous_of(f, 2);
    for (int i = 1; i < RANKS; i++) {
        f->ranks[i].who = (struct rank_watch_members){two, 2};
        begin(&f->ranks[i], watch);
    }
    for (int i = 1; i < RANKS; i++)
        until(&f->ranks[i], &f->ranks[i].met);
    for (int i = 1; i < RANKS; i++) {
        rank_watch_end(&f->ranks[i].watch);
        end(&f->ranks[i]);
        assert_int_equal(f->ranks[i].code, 0);
    }
}

static void who_is_not_in_the_list_or_is_alone_watches_nobody(void **state)
{
    static const int others[] = {0, 2}, own[] = {1};
    struct fixture *f = *state;
    struct watcher *w = &f->ranks[1];
    const struct rank_watch_members lists[] = {{others, 2}, {own, 1}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        assert_int_equal(rank_watch_meet(&w->watch, w->rendezvous, &lists[i], LIMIT_MS, &w->err), ERR_INVALID);
        assert_string_equal(w->err.msg, "rank 1 is not among them, or alone");
    }
}

static void after_the_end_nobody_uses_the_rendezvous(void **state)
{
    struct fixture *f = *state;
    struct watcher *w = &f->ranks[2];
    rank_watch_end(&w->watch);
    struct rendezvous *gone = rendezvous_new(&(struct rendezvous_config){.loop = f->loop, .world = 1});
    rendezvous_free(gone);
    assert_int_equal(rank_watch_meet(&w->watch, gone, &w->who, LIMIT_MS, &w->err), ERR_CANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_learn_who_was_lost),
        TEST(after_a_loss_all_watch_each_other_again),
        TEST(who_ends_is_not_lost),
        TEST(the_end_does_not_wait_for_ranks_that_do_not_come),
        TEST(a_rank_that_ends_while_all_agree_is_not_lost),
        TEST(nobody_is_reported_when_the_first_rank_ends_while_all_agree),
        TEST(who_does_not_come_is_named),
        TEST(ranks_of_a_list_watch_each_other),
        TEST(who_is_not_in_the_list_or_is_alone_watches_nobody),
        TEST(after_the_end_nobody_uses_the_rendezvous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
