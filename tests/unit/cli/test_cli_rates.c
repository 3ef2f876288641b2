// SPDX-License-Identifier: Apache-2.0
// How `kubectl cadre top` computes rates from two answers of group.stats.
#include "cli/rates.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct arena arena;
static struct rate *rates;
static size_t n;
static cJSON *documents[8];
static size_t n_documents;

static int teardown(void **state)
{
    (void)state;
    while (n_documents)
        cJSON_Delete(documents[--n_documents]);
    arena_done(&arena);
    arena = ARENA_INIT;
    return 0;
}

static const cJSON *parse(const char *text)
{
    if (!text)
        return NULL;
    cJSON *v = cJSON_Parse(text);
    assert_non_null(v);
    documents[n_documents++] = v;
    return v;
}

static int between(const char *before, const char *now, int64_t fallback_us)
{
    struct err err = ERR_INIT;
    return rates_of(&(struct rates_span){parse(before), parse(now), fallback_us}, 1, &arena, &rates, &n, &err);
}

#define BOUNDS "\"boundsMicros\":[100,200,1000]"

static void counts_become_rates_over_the_time_between(void **state)
{
    (void)state;
    assert_int_equal(
        between("{\"nowMicros\":1000000," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":10,\"errors\":1,"
                "\"inFlight\":9,\"bytesIn\":100,\"bytesOut\":0,\"buckets\":[10,1,0,0]}]}",
                "{\"nowMicros\":3000000," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":107,\"errors\":4,"
                "\"inFlight\":2,\"bytesIn\":500,\"bytesOut\":600,\"buckets\":[10,101,0,0]}]}",
                7),
        0);
    assert_int_equal(n, 1);
    assert_string_equal(rates[0].name, "add");
    assert_int_equal(rates[0].calls, 50); // 100 in 2 s
    assert_int_equal(rates[0].bytes, 500);
    assert_int_equal(rates[0].errors, 3);
    assert_int_equal(rates[0].total_errors, 4);
    assert_int_equal(rates[0].in_flight, 2);
    assert_int_equal(rates[0].p50_us, 150); // halfway through the bucket that has all 100
    assert_int_equal(rates[0].p99_us, 199);
    assert_int_equal(rates[0].slowest, -1);
}

static void what_is_above_all_bounds_is_the_last_bound_and_nothing_is_none(void **state)
{
    (void)state;
    assert_int_equal(between(NULL,
                             "{\"nowMicros\":1000000," BOUNDS ",\"methods\":[{\"name\":\"slow\",\"results\":4,"
                             "\"buckets\":[0,0,0,4]},{\"name\":\"idle\",\"buckets\":[0,0,0,0]}]}",
                             1),
                     0);
    assert_int_equal(rates[0].p50_us, 1000);
    assert_int_equal(rates[1].p50_us, -1);
    assert_int_equal(rates[1].calls, 0);
}

static void the_slowest_rank_is_the_one_farthest_behind_in_all_of_the_time(void **state)
{
    (void)state;
    assert_int_equal(
        between("{\"nowMicros\":1," BOUNDS ",\"methods\":[{\"name\":\"step\",\"compared\":100,\"buckets\":[],"
                "\"ranks\":[{\"rank\":0,\"last\":90,\"behindMicros\":9000000,\"errors\":0}]}]}",
                "{\"nowMicros\":2," BOUNDS ",\"methods\":[{\"name\":\"step\",\"compared\":110,\"buckets\":[],"
                "\"ranks\":[{\"rank\":0,\"last\":96,\"behindMicros\":9000060,\"errors\":0},"
                "{\"rank\":3,\"last\":4,\"behindMicros\":800,\"errors\":0},"
                "{\"rank\":5,\"last\":0,\"behindMicros\":0,\"errors\":2}]}]}",
                1),
        0);
    assert_int_equal(rates[0].slowest, 3); // rank 0 was the last more often, by 10 us
    assert_int_equal(rates[0].behind_us, 200);
    assert_int_equal(rates[0].last, 4);
    assert_int_equal(rates[0].compared, 10);
}

static void another_proxy_counts_from_its_own_beginning(void **state)
{
    (void)state;
    assert_int_equal(between("{\"nowMicros\":900," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":50,"
                             "\"buckets\":[50,0,0,0]}]}",
                             "{\"nowMicros\":5," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":4,"
                             "\"buckets\":[4,0,0,0]}]}",
                             2000000),
                     0);
    assert_int_equal(rates[0].ended, 4);
    assert_int_equal(rates[0].calls, 2);
}

// Two replicas; of the second a second has passed where it was two of the first.
static void what_replicas_know_is_added_up(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const struct rates_span spans[] = {
        {parse("{\"nowMicros\":1000000," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":10,\"errors\":1,"
               "\"bytesIn\":100,\"buckets\":[10,1,0,0],\"compared\":1,\"ranks\":[]}]}"),
         parse("{\"nowMicros\":3000000," BOUNDS ",\"methods\":[{\"name\":\"add\",\"results\":20,\"errors\":1,"
               "\"inFlight\":2,\"bytesIn\":300,\"buckets\":[20,1,0,0],\"compared\":11,\"ranks\":["
               "{\"rank\":1,\"last\":6,\"behindMicros\":60},{\"rank\":2,\"last\":4,\"behindMicros\":80}]}]}"),
         1},
        {parse("{\"nowMicros\":7000000," BOUNDS ",\"methods\":[]}"),
         parse("{\"nowMicros\":8000000," BOUNDS ",\"methods\":[{\"name\":\"only\",\"results\":1,\"buckets\":[0,0,1,0]},"
               "{\"name\":\"add\",\"results\":28,\"errors\":2,\"inFlight\":3,\"bytesIn\":50,\"bytesOut\":50,"
               "\"buckets\":[0,0,30,0],\"compared\":30,\"ranks\":[{\"rank\":1,\"last\":30,\"behindMicros\":300}]}]}"),
         1},
    };
    assert_int_equal(rates_of(spans, 2, &arena, &rates, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_string_equal(rates[0].name, "add");
    assert_string_equal(rates[1].name, "only");
    assert_int_equal(rates[0].ended, 40);
    assert_int_equal(rates[0].calls, 35); // 10 in 2 s, and 30 in 1 s
    assert_int_equal(rates[0].bytes, 200);
    assert_int_equal(rates[0].errors, 2);
    assert_int_equal(rates[0].total_errors, 3);
    assert_int_equal(rates[0].in_flight, 5);
    assert_int_equal(rates[0].p50_us, 466); // 10 below 100 us, the 10th of 30 between 200 and 1000
    assert_int_equal(rates[0].slowest, 1);
    assert_int_equal(rates[0].last, 36);
    assert_int_equal(rates[0].compared, 40);
    assert_int_equal(rates[0].behind_us, 10);
    assert_int_equal(rates[1].ended, 1);
}

static void durations_with_other_bounds_are_not_added_up(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const struct rates_span spans[] = {{NULL, parse("{" BOUNDS ",\"methods\":[]}"), 1},
                                       {NULL, parse("{\"boundsMicros\":[100,300,1000],\"methods\":[]}"), 1}};
    assert_int_equal(rates_of(spans, 1, &arena, &rates, &n, &err), 0);
    assert_int_equal(rates_of(spans, 2, &arena, &rates, &n, &err), ERR_INVALID);
}

static void an_answer_of_another_kind_is_refused(void **state)
{
    (void)state;
    assert_int_equal(between(NULL, "{\"name\":\"llama\"}", 1), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(counts_become_rates_over_the_time_between, teardown),
        cmocka_unit_test_teardown(what_is_above_all_bounds_is_the_last_bound_and_nothing_is_none, teardown),
        cmocka_unit_test_teardown(the_slowest_rank_is_the_one_farthest_behind_in_all_of_the_time, teardown),
        cmocka_unit_test_teardown(another_proxy_counts_from_its_own_beginning, teardown),
        cmocka_unit_test_teardown(what_replicas_know_is_added_up, teardown),
        cmocka_unit_test_teardown(durations_with_other_bounds_are_not_added_up, teardown),
        cmocka_unit_test_teardown(an_answer_of_another_kind_is_refused, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
