// SPDX-License-Identifier: Apache-2.0
// Proxies hear about transfers that methods run on other threads.
#include "worker/host/progress.h"

#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

struct fixture {
    struct loop *loop;
    struct progress *progress;
    char told[PROGRESS_TEXT_SIZE]; // the last message
    int times;
};

static void tell(void *ctx, const char *body, size_t len)
{
    struct fixture *f = ctx;
    memcpy(f->told, body, len);
    f->told[len] = '\0';
    f->times++;
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.loop = loop_new()};
    f.progress = progress_new(f.loop, tell, &f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    progress_free(f->progress);
    loop_free(f->loop);
    return 0;
}

#define UNTIL_TOLD(f, text) TURN_UNTIL(loop_run_once((f)->loop, 10), strcmp((f)->told, text) == 0, (f)->told)

static void has(struct progress_part *part, uint64_t done, uint64_t bytes)
{
    atomic_store(&part->bytes.total, bytes);
    atomic_store(&part->bytes.done, done);
}

static void what_moves_is_told_again_and_again_and_its_end_once(void **state)
{
    struct fixture *f = *state;
    struct progress_part part = {.link = {0}};
    progress_begin(f->progress, &part);
    has(&part, 10, 40);
    UNTIL_TOLD(f, "{\"done\":10,\"bytes\":40}");
    int before = f->times;
    TURN_UNTIL(loop_run_once(f->loop, 10), f->times >= before + 2, f->told);
    has(&part, 40, 40);
    UNTIL_TOLD(f, "{\"done\":40,\"bytes\":40}");
    progress_end(f->progress, &part);
    UNTIL_TOLD(f, "{\"done\":0,\"bytes\":0}");
    progress_begin(f->progress, &part); // the total is not known yet
    before = f->times;
    loop_run_once(f->loop, 0);
    progress_end(f->progress, &part);
    loop_run_once(f->loop, 0);
    assert_int_equal(f->times, before);
}

static void transfers_at_the_same_time_are_added_up(void **state)
{
    struct fixture *f = *state;
    struct progress_part a = {.link = {0}}, b = {.link = {0}};
    progress_begin(f->progress, &a);
    progress_begin(f->progress, &b);
    has(&a, 1, 10);
    has(&b, 2, 30);
    UNTIL_TOLD(f, "{\"done\":3,\"bytes\":40}");
    progress_end(f->progress, &a);
    UNTIL_TOLD(f, "{\"done\":2,\"bytes\":30}");
    progress_end(f->progress, &b);
    UNTIL_TOLD(f, "{\"done\":0,\"bytes\":0}");
}

static void *move(void *ctx)
{
    struct fixture *f = ctx;
    struct progress_part part = {.link = {0}};
    for (int i = 0; i < 100; i++) {
        progress_begin(f->progress, &part);
        atomic_store(&part.bytes.total, 100);
        for (int k = 0; k < 100; k++)
            atomic_fetch_add(&part.bytes.done, 1);
        progress_end(f->progress, &part);
    }
    return NULL;
}

static void threads_do_not_wait_for_the_loop(void **state)
{
    struct fixture *f = *state;
    struct progress_part seen = {.link = {0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, move, f), 0);
    loop_run_once(f->loop, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    progress_begin(f->progress, &seen);
    has(&seen, 7, 8);
    UNTIL_TOLD(f, "{\"done\":7,\"bytes\":8}");
    progress_end(f->progress, &seen);
    UNTIL_TOLD(f, "{\"done\":0,\"bytes\":0}");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_moves_is_told_again_and_again_and_its_end_once),
        T(transfers_at_the_same_time_are_added_up),
        T(threads_do_not_wait_for_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
