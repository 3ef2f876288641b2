// SPDX-License-Identifier: Apache-2.0
// The stats of calls: by method, by rank, and as metrics.
#include "common/base/json.h"
#include "operator/proxy/stats_report.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000

static const struct group *group_of(struct world *w)
{
    return router_group(&w->f.router, FIXTURE_UID);
}

static struct stats_method *method(struct world *w, const char *name)
{
    return stats_find((struct stats *)&group_of(w)->stats, "", name);
}

static void pass_us(struct world *w, int64_t us)
{
    w->f.clock.us += us;
    router_waits(&w->f.router);
}

// A call of add(). The ranks answer in this order, with these delays.
static void add_by(struct world *w, const uint32_t ranks[WORLD], const int64_t after_us[WORLD])
{
    uint32_t ids[WORLD];
    sends_group(w, 1, ADD, "[1]");
    for (uint32_t i = 0; i < WORLD; i++)
        ids[i] = worker_takes(&w->workers[i], "[1]");
    for (uint32_t i = 0; i < WORLD; i++) {
        pass_us(w, after_us[i]);
        worker_says(&w->f, &w->workers[ranks[i]], ids[ranks[i]], "10");
    }
    hears(w, "1 RESULT*");
}

static void a_call_is_counted_with_its_bytes_and_its_duration(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .args = "[1]"});
    assert_int_equal(method(w, "add")->in_flight, 1);
    uint32_t id = worker_takes(&w->workers[2], "[1]");
    pass_us(w, 3 * MS);
    worker_says(&w->f, &w->workers[2], id, "[7,8]");
    hears(w, "1 RESULT [7,8]");
    const struct stats_method *m = method(w, "add");
    assert_int_equal(m->in_flight, 0);
    assert_int_equal(m->results, 1);
    assert_int_equal(m->errors, 0);
    assert_int_equal(m->us, 3 * MS);
    assert_int_equal(m->bytes_in, 4 + strlen(ADD) + 3);
    assert_int_equal(m->bytes_out, 5);
    for (unsigned i = 0; i <= STATS_BUCKETS; i++) // the bucket of 5 ms
        assert_int_equal(m->buckets[i], i < STATS_BUCKETS && stats_bounds[i] == 5 * MS);
    assert_int_equal(m->compared, 0); // one rank cannot be behind another
}

static void bounds_take_what_is_equal_and_the_last_bucket_what_is_above_all(void **state)
{
    struct world *w = *state;
    const uint32_t in_order[WORLD] = {0, 1, 2, 3};
    add_by(w, in_order, (int64_t[WORLD]){50});
    add_by(w, in_order, (int64_t[WORLD]){51});
    add_by(w, in_order, (int64_t[WORLD]){300 * 1000 * (int64_t)MS});
    add_by(w, in_order, (int64_t[WORLD]){300 * 1000 * (int64_t)MS + 1});
    add_by(w, in_order, (int64_t[WORLD]){0});
    const struct stats_method *m = method(w, "add");
    assert_int_equal(m->buckets[0], 2);
    assert_int_equal(m->buckets[1], 1);
    assert_int_equal(m->buckets[STATS_BUCKETS - 1], 1);
    assert_int_equal(m->buckets[STATS_BUCKETS], 1);
}

static void the_last_rank_is_compared_with_the_median(void **state)
{
    struct world *w = *state;
    add_by(w, (uint32_t[WORLD]){0, 1, 2, 3}, (int64_t[WORLD]){10, 20, 30, 40}); // the median is 30, the last one 100
    add_by(w, (uint32_t[WORLD]){3, 2, 0, 1}, (int64_t[WORLD]){10, 0, 0, 0});
    add_by(w, (uint32_t[WORLD]){2, 1, 0, 3}, (int64_t[WORLD]){0, 5, 500, 500});
    const struct stats_method *m = method(w, "add");
    assert_int_equal(m->compared, 3);
    assert_int_equal(m->behind_us, 70 + 0 + 1000);
    assert_int_equal(m->ranks[3].last, 2);
    assert_int_equal(m->ranks[3].behind_us, 70 + 1000);
    assert_int_equal(m->ranks[1].last, 1);
    assert_int_equal(m->ranks[1].behind_us, 0);
    assert_int_equal(m->ranks[0].last, 0);
}

static void an_error_counts_for_the_rank_that_caused_it(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    sends_group(w, 1, ADD, "[1]");
    uint32_t id = worker_takes(&w->workers[1], "[1]");
    worker_answer(&w->f, &w->workers[1], id, RECORD_ERROR, "{\"code\":\"FAILED\",\"message\":\"no\"}", &err);
    hears(w, "1 ERROR rank=1 FAILED*");
    for (uint32_t i = 0; i < WORLD; i++) // later answers do not count
        if (i != 1)
            worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[1]"), "1");
    sends_group(w, 2, ADD, "[1]");
    pass_us(w, MS);
    ranks_read(w);
    client_cancel(&w->c, 2);
    hears(w, "2 ERROR CANCELED*");
    const struct stats_method *m = method(w, "add");
    assert_int_equal(m->errors, 2);
    assert_int_equal(m->results, 0);
    assert_int_equal(m->in_flight, 0);
    assert_int_equal(m->ranks[1].errors, 1);
    assert_int_equal(m->ranks[0].errors + m->ranks[2].errors + m->ranks[3].errors, 0);
    assert_int_equal(m->compared, 0);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[1]"), "1");
}

static void a_client_that_goes_leaves_nothing_in_flight(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "[1]");
    ranks_read(w);
    client_close(&w->c);
    assert_int_equal(method(w, "add")->in_flight, 0);
    assert_int_equal(method(w, "add")->errors, 1);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[1]"), "1");
    client_open(&w->f, &w->c, "llama");
}

static void names_that_nobody_has_declared_take_no_room(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 2 * STATS_METHODS_MAX; i++) {
        char head[64];
        snprintf(head, sizeof head, "{\"method\":\"made_up_%d\"}", i);
        sends_group(w, 1, head, "[]");
        hears(w, "1 ERROR NOT_FOUND*");
    }
    assert_int_equal(group_of(w)->stats.n, 0);
    assert_int_equal(group_of(w)->stats.other.errors, 2 * STATS_METHODS_MAX);
}

static void a_call_that_waits_for_the_ranks_gets_its_name_when_they_are_there(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD, .args = "[1]"});
    assert_int_equal(group_of(w)->stats.other.in_flight, 1);
    pass_us(w, 2 * MS);
    worker_start(&w->f, &w->workers[0], 0, 1);
    assert_int_equal(group_of(w)->stats.other.in_flight, 0);
    assert_int_equal(method(w, "add")->in_flight, 1);
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[1]"), "1");
    hears(w, "1 RESULT 1");
    assert_int_equal(method(w, "add")->us, 2 * MS); // includes the wait
}

static void beyond_the_bound_methods_are_others(void **state)
{
    struct clock_fake clock;
    struct stats s;
    (void)state;
    clock_fake_init(&clock, 1, 0);
    struct stats_common common = {.clock = &clock.clock, .n_series = STATS_SERIES_MAX - 1};
    stats_init(&s, &common);
    for (int i = 0; i < STATS_METHODS_MAX + 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        struct stats_method *m = stats_add(&s, "", name);
        assert_ptr_equal(stats_find(&s, "", name), m);
        assert_int_equal(m == &s.other, i >= STATS_METHODS_MAX);
    }
    assert_ptr_equal(stats_add(&s, "actor", "m1"), &s.other);
    assert_true(s.methods[0]->in_series);
    assert_false(s.methods[1]->in_series);
    assert_int_equal(common.n_series, STATS_SERIES_MAX);
    stats_done(&s);
    assert_int_equal(common.n_series, STATS_SERIES_MAX - 1);
}

static void methods_of_roles_have_the_role_in_front(void **state)
{
    struct clock_fake clock;
    struct stats s;
    (void)state;
    clock_fake_init(&clock, 1, 0);
    struct stats_common common = {.clock = &clock.clock};
    stats_init(&s, &common);
    struct stats_method *actor = stats_add(&s, "actor", "add"), *critic = stats_add(&s, "critic", "add");
    assert_string_equal(actor->name, "actor.add");
    assert_ptr_not_equal(actor, critic);
    assert_ptr_equal(stats_find(&s, "actor", "add"), actor);
    assert_ptr_equal(stats_find(&s, "", "add"), &s.other);
    stats_done(&s);
}

static void another_number_of_ranks_forgets_what_was_of_ranks(void **state)
{
    struct world *w = *state;
    add_by(w, (uint32_t[WORLD]){0, 1, 2, 3}, (int64_t[WORLD]){0, 0, 0, 9});
    for (uint32_t i = 0; i < WORLD; i++)
        worker_hang_up(&w->f, &w->workers[i]);
    fixture_group(&w->f, 2, 1, NULL);
    assert_null(method(w, "add")->ranks);
    assert_int_equal(method(w, "add")->results, 1);
}

static void group_stats_is_a_call_that_needs_no_rank(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *v;
    int64_t n;
    add_by(w, (uint32_t[WORLD]){0, 1, 2, 3}, (int64_t[WORLD]){10, 20, 30, 40});
    w->f.router.stats.replica = "operator-1"; // the other replica has other calls
    router_replicas(&w->f.router, "[\"operator-1\",\"operator-2\"]");
    sends_group(w, 2, "{\"method\":\"group.stats\"}", NULL);
    const char *text = client_hears(&w->c);
    assert_non_null(text);
    text += strlen("2 RESULT ");
    assert_int_equal(json_parse(text, strlen(text), NULL, &a, &v, &err), 0);
    assert_true(json_str_is(json_get(v, "replica"), "operator-1"));
    assert_int_equal(json_count(json_get(v, "replicas")), 2);
    const struct json *m = json_get(v, "methods")->child;
    assert_true(json_str_is(json_get(m, "name"), "add"));
    assert_true(json_i64(json_get(m, "results"), &n) && n == 1);
    assert_true(json_i64(json_get(m, "behindMicros"), &n) && n == 70);
    assert_int_equal(json_count(json_get(m, "buckets")), STATS_BUCKETS + 1);
    assert_int_equal(json_count(json_get(v, "boundsMicros")), STATS_BUCKETS);
    assert_int_equal(json_count(json_get(m, "ranks")), 1);
    assert_true(json_i64(json_get(json_get(m, "ranks")->child, "rank"), &n) && n == 3);
    assert_null(m->next);
    arena_done(&a);
}

static void tells(struct world *w, uint32_t rank, const char *progress)
{
    struct err err = ERR_INIT;
    assert_int_equal(worker_answer(&w->f, &w->workers[rank], 0, RECORD_PROGRESS, progress, &err), 0);
}

// group.stats has this as "transfer". NULL: it has none.
static void transfer_is(struct world *w, const char *want)
{
    sends_group(w, 2, "{\"method\":\"group.stats\"}", NULL);
    const char *text = client_hears(&w->c), *found = strstr(text, "\"transfer\":");
    if (!want)
        assert_null(found);
    else if (!found || strncmp(found + strlen("\"transfer\":"), want, strlen(want)) != 0)
        fail_msg("%s is not in %s", want, text);
}

static void group_stats_says_how_far_the_weights_are_that_its_ranks_get(void **state)
{
    struct world *w = *state;
    transfer_is(w, NULL);
    tells(w, 0, "{\"done\":100,\"bytes\":100}");
    tells(w, 1, "{\"done\":30,\"bytes\":50}");
    tells(w, 3, "{\"done\":50,\"bytes\":100}");
    transfer_is(w, "{\"done\":180,\"bytes\":250,\"ranks\":3,\"complete\":1,\"slowest\":3}");
    tells(w, 3, "{\"done\":80,\"bytes\":100}");
    transfer_is(w, "{\"done\":210,\"bytes\":250,\"ranks\":3,\"complete\":1,\"slowest\":1}");
    worker_hang_up(&w->f, &w->workers[1]);
    tells(w, 0, "{\"done\":0,\"bytes\":0}");
    transfer_is(w, "{\"done\":80,\"bytes\":100,\"ranks\":1,\"complete\":0,\"slowest\":3}");
    tells(w, 3, "{\"done\":0,\"bytes\":0}");
    transfer_is(w, NULL);
}

static void progress_that_makes_no_sense_breaks_the_protocol(void **state)
{
    struct world *w = *state;
    const char *const wrong[] = {"",
                                 "{",
                                 "{}",
                                 "{\"done\":1}",
                                 "{\"done\":2,\"bytes\":1}",
                                 "{\"done\":-1,\"bytes\":1}",
                                 "{\"done\":0,\"bytes\":9223372036854775807}"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(worker_answer(&w->f, &w->workers[2], 0, RECORD_PROGRESS, wrong[i], &err), ERR_PROTO);
        assert_string_equal(err.msg, "PROGRESS: rank 2 must say \"done\" of \"bytes\"");
    }
    transfer_is(w, NULL);
}

static void metrics_have_a_series_a_method(void **state)
{
    struct world *w = *state;
    struct buf out = BUF_INIT(1 << 20);
    add_by(w, (uint32_t[WORLD]){0, 1, 2, 3}, (int64_t[WORLD]){10, 20, 30, 40});
    stats_report_metrics(&w->f.router, &out);
    const char *const lines[] = {
        "# TYPE cadre_call_duration_seconds histogram\n",
        "cadre_call_duration_seconds_bucket{namespace=\"ml\",group=\"llama\",method=\"add\",le=\"5e-05\"} 0\n",
        "cadre_call_duration_seconds_bucket{namespace=\"ml\",group=\"llama\",method=\"add\",le=\"0.0001\"} 1\n",
        "cadre_call_duration_seconds_bucket{namespace=\"ml\",group=\"llama\",method=\"add\",le=\"+Inf\"} 1\n",
        "cadre_call_duration_seconds_sum{namespace=\"ml\",group=\"llama\",method=\"add\"} 0.000100\n",
        "cadre_calls_total{namespace=\"ml\",group=\"llama\",method=\"add\",result=\"ok\"} 1\n",
        "cadre_calls_in_flight{namespace=\"ml\",group=\"llama\",method=\"add\"} 0\n",
        "cadre_call_bytes_total{namespace=\"ml\",group=\"llama\",method=\"add\",direction=\"out\"} 13\n",
        "cadre_call_last_rank_seconds_total{namespace=\"ml\",group=\"llama\",method=\"add\"} 0.000070\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(buf_str(&out), lines[i]))
            fail_msg("not there: %s\n%s", lines[i], buf_str(&out));
    buf_reset(&out);
    w->f.router.stats.n_series = STATS_SERIES_MAX;
    sends_group(w, 1, "{\"method\":\"first\"}", "[]");
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[]"), "1");
    stats_report_metrics(&w->f.router, &out);
    assert_null(strstr(buf_str(&out), "\"first\""));
    assert_non_null(
        strstr(buf_str(&out), "cadre_calls_total{namespace=\"\",group=\"\",method=\"other\",result=\"ok\"} 1\n"));
    w->f.router.stats.n_series = 1;
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(a_call_is_counted_with_its_bytes_and_its_duration),
        PROXY_TEST(bounds_take_what_is_equal_and_the_last_bucket_what_is_above_all),
        PROXY_TEST(the_last_rank_is_compared_with_the_median),
        PROXY_TEST(an_error_counts_for_the_rank_that_caused_it),
        PROXY_TEST(a_client_that_goes_leaves_nothing_in_flight),
        PROXY_TEST(names_that_nobody_has_declared_take_no_room),
        PROXY_TEST_EMPTY(a_call_that_waits_for_the_ranks_gets_its_name_when_they_are_there),
        cmocka_unit_test(beyond_the_bound_methods_are_others),
        cmocka_unit_test(methods_of_roles_have_the_role_in_front),
        PROXY_TEST(another_number_of_ranks_forgets_what_was_of_ranks),
        PROXY_TEST(group_stats_is_a_call_that_needs_no_rank),
        PROXY_TEST(group_stats_says_how_far_the_weights_are_that_its_ranks_get),
        PROXY_TEST(progress_that_makes_no_sense_breaks_the_protocol),
        PROXY_TEST(metrics_have_a_series_a_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
