// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/workqueue.h"

#include "common/base/rand.h"
#include "tests/unit/clock_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct clock_fake now;
static struct workqueue *q;

static int setup(void **state)
{
    (void)state;
    clock_fake_init(&now, 1000, 0);
    q = workqueue_new(&now.clock);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workqueue_free(q);
    return 0;
}

static void assert_next(const char *want)
{
    const char *key = workqueue_get(q);
    if (want) {
        assert_non_null(key);
        assert_string_equal(key, want);
    } else {
        assert_null(key);
    }
}

static void what_is_cleared_is_as_if_it_had_never_been(void **state)
{
    (void)state;
    struct workqueue_stats stats;
    workqueue_add(q, "running");
    workqueue_add(q, "again");
    assert_next("running");
    assert_next("again");
    workqueue_add(q, "again");
    workqueue_add(q, "waiting");
    workqueue_add_after(q, "later", 10);
    for (int i = 0; i < 20; i++)
        workqueue_add_backoff(q, "failed");
    workqueue_clear(q);
    assert_next(NULL);
    assert_int_equal(workqueue_wait_ms(q), -1);
    workqueue_stats(q, &stats);
    assert_int_equal(stats.depth, 0);
    assert_int_equal(stats.processing, 2);
    clock_fake_advance(&now, 1000 * 1000);
    assert_next(NULL);
    workqueue_done(q, "running");
    workqueue_done(q, "again");
    assert_next(NULL);
    assert_int_equal(workqueue_add_backoff(q, "failed"), 5);
    workqueue_add(q, "waiting");
    assert_next("waiting");
}

static void what_failed_can_be_had_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++)
        workqueue_add_backoff(q, "failed");
    workqueue_add_after(q, "later", 60 * 1000);
    workqueue_add_backoff(q, "too");
    assert_next(NULL);
    workqueue_retry(q);
    const char *first = workqueue_get(q), *second = workqueue_get(q);
    assert_non_null(first);
    assert_non_null(second);
    assert_string_not_equal(first, "later"); // "later" waits for its delay
    assert_string_not_equal(second, "later");
    assert_next(NULL);
    assert_int_equal(workqueue_add_backoff(q, "failed"), 5);
}

static void keys_come_in_order_and_once(void **state)
{
    (void)state;
    workqueue_add(q, "b");
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    assert_next("b");
    assert_next("a");
    assert_next(NULL);
}

static void a_key_in_process_is_not_given_out_again(void **state)
{
    (void)state;
    workqueue_add(q, "a");
    assert_next("a");
    workqueue_add(q, "a");
    workqueue_add(q, "a");
    assert_next(NULL);
    workqueue_done(q, "a");
    assert_next("a"); // it was added meanwhile: it comes once more
    workqueue_done(q, "a");
    assert_next(NULL);
}

static void done_of_a_key_not_in_process_changes_nothing(void **state)
{
    (void)state;
    workqueue_done(q, "never seen");
    workqueue_add(q, "a");
    workqueue_done(q, "a");
    assert_next("a");
}

static void a_delayed_key_comes_when_it_is_time(void **state)
{
    (void)state;
    workqueue_add_after(q, "a", 100);
    assert_int_equal(workqueue_wait_ms(q), 100);
    assert_next(NULL);
    clock_fake_advance(&now, 99);
    assert_int_equal(workqueue_wait_ms(q), 1);
    assert_next(NULL);
    clock_fake_advance(&now, 1);
    assert_int_equal(workqueue_wait_ms(q), 0);
    assert_next("a");
    assert_int_equal(workqueue_wait_ms(q), -1);
}

static void the_earliest_delay_wins(void **state)
{
    (void)state;
    workqueue_add_after(q, "a", 100);
    workqueue_add_after(q, "a", 50);
    workqueue_add_after(q, "a", 200);
    assert_int_equal(workqueue_wait_ms(q), 50);
    clock_fake_advance(&now, 50);
    assert_next("a");
    workqueue_done(q, "a");
    clock_fake_advance(&now, 1000);
    assert_next(NULL); // one delay per key, not three
}

static void no_delay_is_now(void **state)
{
    (void)state;
    workqueue_add_after(q, "a", 0);
    workqueue_add_after(q, "b", -5);
    assert_next("a");
    assert_next("b");
}

static void adding_a_delayed_key_does_not_take_its_delay_away(void **state)
{
    (void)state;
    workqueue_add_after(q, "a", 100);
    workqueue_add(q, "a");
    assert_next("a");
    workqueue_done(q, "a");
    clock_fake_advance(&now, 100);
    assert_next("a");
}

static void a_delay_that_ends_while_the_key_is_in_process_brings_it_back_after(void **state)
{
    (void)state;
    workqueue_add(q, "a");
    assert_next("a");
    workqueue_add_after(q, "a", 10);
    clock_fake_advance(&now, 10);
    assert_next(NULL);
    workqueue_done(q, "a");
    assert_next("a");
}

static void delayed_keys_come_in_order_of_their_time_then_of_arrival(void **state)
{
    (void)state;
    workqueue_add_after(q, "c", 30);
    workqueue_add_after(q, "a", 10);
    workqueue_add_after(q, "b1", 20);
    workqueue_add_after(q, "b2", 20);
    clock_fake_advance(&now, 100);
    assert_next("a");
    assert_next("b1");
    assert_next("b2");
    assert_next("c");
}

static void failures_back_off_from_5_ms_to_5_minutes(void **state)
{
    (void)state;
    int64_t want = 5;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(workqueue_add_backoff(q, "a"), want);
        want = want * 2 > 300000 ? 300000 : want * 2;
    }
    assert_int_equal(workqueue_add_backoff(q, "b"), 5); // each key has its own backoff
    workqueue_forget(q, "a");
    assert_int_equal(workqueue_add_backoff(q, "a"), 5);
    workqueue_forget(q, "never seen");
}

static void keys_are_copied(void **state)
{
    (void)state;
    char key[] = "ml/a";
    workqueue_add(q, key);
    key[0] = 'x';
    assert_next("ml/a");
}

static int64_t queued_ms, worked_ms;

static void on_taken(void *ctx, int64_t ms)
{
    (void)ctx;
    queued_ms = ms;
}

static void on_done(void *ctx, int64_t ms)
{
    (void)ctx;
    worked_ms = ms;
}

static void it_counts_what_it_does(void **state)
{
    (void)state;
    struct workqueue_stats s;
    workqueue_observe(q, on_taken, on_done, NULL);
    workqueue_add(q, "a");
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    workqueue_add_backoff(q, "c");
    workqueue_stats(q, &s);
    assert_int_equal(s.depth, 2);
    assert_int_equal(s.delayed, 1);
    assert_int_equal(s.adds, 2); // a and b came once; c is delayed
    assert_int_equal(s.retries, 1);
    clock_fake_advance(&now, 3);
    assert_next("a");
    assert_int_equal(queued_ms, 3);
    clock_fake_advance(&now, 1);
    assert_next("b");
    clock_fake_advance(&now, 7);
    workqueue_add(q, "b");
    workqueue_stats(q, &s);
    assert_int_equal(s.processing, 2);
    assert_int_equal(s.depth, 1); // b waits for its first run to end
    assert_int_equal(s.longest_running_ms, 8);
    assert_int_equal(s.unfinished_ms, 15);
    workqueue_done(q, "a");
    assert_int_equal(worked_ms, 8);
}

// A simple model of client-go's three sets and its waiting list, as arrays over few keys.
enum { KEYS = 6 };

struct model {
    bool dirty[KEYS], processing[KEYS];
    int64_t due[KEYS]; // 0 = not delayed
    uint64_t due_order[KEYS], order;
    int failures[KEYS];
    int queue[KEYS], n;
};

static void model_add(struct model *m, int k)
{
    if (m->dirty[k])
        return;
    m->dirty[k] = true;
    if (!m->processing[k])
        m->queue[m->n++] = k;
}

static void model_add_after(struct model *m, int k, int64_t ms)
{
    if (ms <= 0)
        model_add(m, k);
    else if (!m->due[k] || now.mono + ms < m->due[k]) {
        if (!m->due[k])
            m->due_order[k] = m->order++;
        m->due[k] = now.mono + ms;
    }
}

static int model_earliest(const struct model *m)
{
    int best = -1;
    for (int k = 0; k < KEYS; k++)
        if (m->due[k] && (best < 0 || m->due[k] < m->due[best] ||
                          (m->due[k] == m->due[best] && m->due_order[k] < m->due_order[best])))
            best = k;
    return best;
}

static int model_get(struct model *m)
{
    for (int k; (k = model_earliest(m)) >= 0 && m->due[k] <= now.mono;) {
        m->due[k] = 0;
        model_add(m, k);
    }
    if (!m->n)
        return -1;
    int k = m->queue[0];
    memmove(m->queue, m->queue + 1, (size_t)--m->n * sizeof *m->queue);
    m->dirty[k] = false;
    m->processing[k] = true;
    return k;
}

static void model_done(struct model *m, int k)
{
    if (!m->processing[k])
        return;
    m->processing[k] = false;
    if (m->dirty[k])
        m->queue[m->n++] = k;
}

static void one_random_step(struct model *m, struct rand *r)
{
    int k = (int)rand_below(r, KEYS);
    char key[16];
    snprintf(key, sizeof key, "ns/%d", k);
    int64_t ms = (int64_t)rand_below(r, 30);
    switch (rand_below(r, 7)) {
    case 0:
        workqueue_add(q, key);
        model_add(m, k);
        break;
    case 1:
        workqueue_add_after(q, key, ms);
        model_add_after(m, k, ms);
        break;
    case 2: {
        int64_t want = (int64_t)5 << (m->failures[k] < 18 ? m->failures[k] : 18);
        want = want > 300000 ? 300000 : want;
        m->failures[k]++;
        assert_int_equal(workqueue_add_backoff(q, key), want);
        model_add_after(m, k, want);
        break;
    }
    case 3:
        workqueue_forget(q, key);
        m->failures[k] = 0;
        break;
    case 4:
        workqueue_done(q, key);
        model_done(m, k);
        break;
    case 5: {
        int got = model_get(m);
        snprintf(key, sizeof key, "ns/%d", got);
        assert_next(got < 0 ? NULL : key);
        break;
    }
    default:
        clock_fake_advance(&now, ms);
    }
}

static void it_agrees_with_a_naive_model_at_every_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct model m = {0};
        struct rand r;
        rand_seed(&r, seed);
        for (int i = 0; i < 1000; i++) {
            one_random_step(&m, &r);
            struct workqueue_stats s;
            workqueue_stats(q, &s);
            size_t dirty = 0, processing = 0, delayed = 0;
            for (int k = 0; k < KEYS; k++) {
                dirty += m.dirty[k];
                processing += m.processing[k];
                delayed += m.due[k] != 0;
            }
            assert_int_equal(s.depth, dirty);
            assert_int_equal(s.processing, processing);
            assert_int_equal(s.delayed, delayed);
            int first = model_earliest(&m);
            int64_t wait = first < 0 ? -1 : m.due[first] > now.mono ? m.due[first] - now.mono : 0;
            assert_int_equal(workqueue_wait_ms(q), wait);
        }
        workqueue_free(q);
        q = workqueue_new(&now.clock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define QUEUE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        QUEUE_TEST(keys_come_in_order_and_once),
        QUEUE_TEST(what_is_cleared_is_as_if_it_had_never_been),
        QUEUE_TEST(what_failed_can_be_had_at_once),
        QUEUE_TEST(a_key_in_process_is_not_given_out_again),
        QUEUE_TEST(done_of_a_key_not_in_process_changes_nothing),
        QUEUE_TEST(a_delayed_key_comes_when_it_is_time),
        QUEUE_TEST(the_earliest_delay_wins),
        QUEUE_TEST(no_delay_is_now),
        QUEUE_TEST(adding_a_delayed_key_does_not_take_its_delay_away),
        QUEUE_TEST(a_delay_that_ends_while_the_key_is_in_process_brings_it_back_after),
        QUEUE_TEST(delayed_keys_come_in_order_of_their_time_then_of_arrival),
        QUEUE_TEST(failures_back_off_from_5_ms_to_5_minutes),
        QUEUE_TEST(keys_are_copied),
        QUEUE_TEST(it_counts_what_it_does),
        QUEUE_TEST(it_agrees_with_a_naive_model_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
