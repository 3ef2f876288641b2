// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/metrics.h"

#include "common/base/err.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct metrics *m;
static struct buf text;

static int setup(void **state)
{
    (void)state;
    m = metrics_new();
    text = BUF_INIT(1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    metrics_free(m);
    buf_done(&text);
    return 0;
}

static const char *exposition(void)
{
    buf_reset(&text);
    assert_int_equal(metrics_write(m, &text), 0);
    return buf_str(&text);
}

static void help_and_type_come_once_a_family_and_everything_is_sorted(void **state)
{
    (void)state;
    metric_add(metrics_counter(m, "b_total", "Bees.", "kind=\"worker\""), 2);
    metric_set(metrics_gauge(m, "a", "An A.", ""), -1.5);
    metric_add(metrics_counter(m, "b_total", "Bees.", "kind=\"drone\""), 1);
    assert_string_equal(exposition(), "# HELP a An A.\n"
                                      "# TYPE a gauge\n"
                                      "a -1.5\n"
                                      "# HELP b_total Bees.\n"
                                      "# TYPE b_total counter\n"
                                      "b_total{kind=\"drone\"} 1\n"
                                      "b_total{kind=\"worker\"} 2\n");
}

static void the_same_name_and_labels_are_the_same_series(void **state)
{
    (void)state;
    struct metric *c = metrics_counter(m, "c_total", "C.", "x=\"1\"");
    assert_ptr_equal(metrics_counter(m, "c_total", "C.", "x=\"1\""), c);
    assert_ptr_not_equal(metrics_counter(m, "c_total", "C.", "x=\"2\""), c);
    metric_add(c, 1);
    metric_add(c, 2);
    assert_true(metric_value(c) == 3);
}

static void buckets_are_cumulative_and_end_in_infinity(void **state)
{
    (void)state;
    static const double buckets[] = {1e-8, 0.005, 0.1, 1, 1000};
    struct metric *h = metrics_histogram(m, "t_seconds", "T.", "c=\"wg\"", buckets, ARRAY_LEN(buckets));
    metric_observe(h, 0.005); // "le" means less or equal
    metric_observe(h, 0.25);
    metric_observe(h, 0.25);
    metric_observe(h, 5000);
    assert_true(metric_value(h) == 4);
    assert_string_equal(exposition(), "# HELP t_seconds T.\n"
                                      "# TYPE t_seconds histogram\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"1e-08\"} 0\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"0.005\"} 1\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"0.1\"} 1\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"1\"} 3\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"1000\"} 3\n"
                                      "t_seconds_bucket{c=\"wg\",le=\"+Inf\"} 4\n"
                                      "t_seconds_sum{c=\"wg\"} 5000.505\n"
                                      "t_seconds_count{c=\"wg\"} 4\n");
}

static void a_histogram_without_labels_has_only_le(void **state)
{
    (void)state;
    static const double buckets[] = {1};
    metrics_histogram(m, "t", "T.", "", buckets, 1);
    assert_non_null(strstr(exposition(), "t_bucket{le=\"1\"} 0\nt_bucket{le=\"+Inf\"} 0\nt_sum 0\nt_count 0\n"));
}

static void numbers_read_back_as_themselves(void **state)
{
    (void)state;
    struct metric *g = metrics_gauge(m, "g", "G.", "");
    static const double values[] = {0,    1,      -2,   0.1,           1.0 / 3, 1e-300, 1e300, 123456789012345.0,
                                    1e15, 1234.5, 1e-8, 1700000000.123};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        metric_set(g, values[i]);
        const char *at = strstr(exposition(), "\ng ");
        assert_non_null(at);
        assert_true(strtod(at + 3, NULL) == values[i]);
    }
    metric_set(g, 1.0 / 0.0);
    assert_non_null(strstr(exposition(), "\ng +Inf\n"));
    metric_set(g, -1.0 / 0.0);
    assert_non_null(strstr(exposition(), "\ng -Inf\n"));
    metric_set(g, __builtin_nan(""));
    assert_non_null(strstr(exposition(), "\ng NaN\n"));
}

static void help_and_label_values_are_escaped(void **state)
{
    (void)state;
    struct buf labels = BUF_INIT(100);
    metrics_label(&labels, "a", "x\"y\\z\n");
    metrics_label(&labels, "b", "");
    metrics_gauge(m, "e", "One \"line\"\nor \\ two.", buf_str(&labels));
    buf_done(&labels);
    assert_string_equal(exposition(), "# HELP e One \"line\"\\nor \\\\ two.\n"
                                      "# TYPE e gauge\n"
                                      "e{a=\"x\\\"y\\\\z\\n\",b=\"\"} 0\n");
}

static void count_up(void *ctx)
{
    metric_add(ctx, 1);
}

static void collectors_run_before_each_exposition_until_removed(void **state)
{
    (void)state;
    struct metric *g = metrics_gauge(m, "g", "G.", ""), *other = metrics_gauge(m, "other", "O.", "");
    metrics_on_collect(m, count_up, g);
    metrics_on_collect(m, count_up, other);
    exposition();
    metrics_off_collect(m, count_up, other);
    exposition();
    assert_true(metric_value(g) == 2);
    assert_true(metric_value(other) == 1);
}

static void an_exposition_over_its_limit_is_an_error(void **state)
{
    (void)state;
    metrics_gauge(m, "g", "A help that is longer than the buffer.", "");
    struct buf small = BUF_INIT(20);
    assert_int_equal(metrics_write(m, &small), ERR_LIMIT);
    buf_done(&small);
}

static void requests_to_the_api_server_are_counted_by_code_and_method(void **state)
{
    (void)state;
    struct metrics_rest rest = {m, "10.0.0.1:6443"};
    metrics_rest_observe(&rest, "GET", 200, 3000);
    metrics_rest_observe(&rest, "GET", 200, 300000);
    metrics_rest_observe(&rest, "POST", 0, 1000);
    const char *s = exposition();
    assert_non_null(strstr(s, "rest_client_requests_total{code=\"200\",host=\"10.0.0.1:6443\",method=\"GET\"} 2\n"));
    assert_non_null(
        strstr(s, "rest_client_requests_total{code=\"<error>\",host=\"10.0.0.1:6443\",method=\"POST\"} 1\n"));
    assert_non_null(
        strstr(s, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"GET\",le=\"0.005\"} 1\n"));
    assert_non_null(strstr(s, "rest_client_request_duration_seconds_sum{host=\"10.0.0.1:6443\",verb=\"GET\"} 0.303\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define METRICS_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        METRICS_TEST(help_and_type_come_once_a_family_and_everything_is_sorted),
        METRICS_TEST(the_same_name_and_labels_are_the_same_series),
        METRICS_TEST(buckets_are_cumulative_and_end_in_infinity),
        METRICS_TEST(a_histogram_without_labels_has_only_le),
        METRICS_TEST(numbers_read_back_as_themselves),
        METRICS_TEST(help_and_label_values_are_escaped),
        METRICS_TEST(collectors_run_before_each_exposition_until_removed),
        METRICS_TEST(an_exposition_over_its_limit_is_an_error),
        METRICS_TEST(requests_to_the_api_server_are_counted_by_code_and_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
