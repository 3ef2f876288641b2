// SPDX-License-Identifier: Apache-2.0
// The output of ranks for listeners: folded, in order, bounded (docs/observe.md, S0-10).
#include "operator/proxy/output.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN "{\"method\":\"group.output\"}"

static void prints(struct world *w, uint32_t rank, const char *text)
{
    output_line(&w->f.router, FIXTURE_UID, rank, text, strlen(text));
}

static void listens(struct world *w)
{
    sends_group(w, 1, LISTEN, NULL);
    hears(w, "1 RESULT null");
    assert_ptr_equal(output_changed(&w->f.router), router_group(&w->f.router, FIXTURE_UID));
    assert_null(output_changed(&w->f.router));
}

// The body of the next OUTPUT record is this. NULL: there is no record.
static void is_told(struct world *w, const char *want)
{
    struct wire_record *r = wire_next(&w->c.wire);
    if (!want) {
        assert_null(r);
        return;
    }
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_OUTPUT);
    assert_int_equal(r->h.call, 0);
    assert_string_equal(r->body, want);
    free(r);
}

static void a_line_of_one_rank_comes_after_a_moment(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 2, "loss \"0.5\"");
    is_told(w, NULL);
    fixture_pass(&w->f, OUTPUT_FOLD_MS - 1);
    is_told(w, NULL);
    fixture_pass(&w->f, 1);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"2\",\"text\":\"loss \\\"0.5\\\"\"}]}");
    is_told(w, NULL);
}

static void equal_lines_of_all_ranks_are_one_at_once(void **state)
{
    struct world *w = *state;
    listens(w);
    for (uint32_t i = 0; i < WORLD; i++) {
        is_told(w, NULL);
        prints(w, i, "ready");
    }
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0-3\",\"text\":\"ready\"}]}");
}

static void of_some_ranks_they_are_named(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 3, "b");
    prints(w, 0, "b");
    prints(w, 1, "b");
    prints(w, 2, "c");
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    is_told(
        w,
        "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0-1,3\",\"text\":\"b\"},{\"ranks\":\"2\",\"text\":\"c\"}]}");
}

// Rank 1 prints the lines in the other order, and keeps that order.
static void the_lines_of_a_rank_keep_their_order(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 0, "a");
    prints(w, 0, "b");
    prints(w, 1, "b");
    prints(w, 1, "a");
    prints(w, 0, "b"); // a second time: a line of its own
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0\",\"text\":\"a\"},{\"ranks\":\"0-1\",\"text\":\"b\"},"
               "{\"ranks\":\"1\",\"text\":\"a\"},{\"ranks\":\"0\",\"text\":\"b\"}]}");
}

static void lines_far_apart_are_not_folded(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 0, "a");
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0\",\"text\":\"a\"}]}");
    prints(w, 1, "a");
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"1\",\"text\":\"a\"}]}");
}

static void nobody_listens_and_nothing_is_kept(void **state)
{
    struct world *w = *state;
    prints(w, 0, "a");
    listens(w);
    sends_group(w, 2, LISTEN, "{\"listen\":false}");
    hears(w, "2 RESULT null");
    assert_ptr_equal(output_changed(&w->f.router), router_group(&w->f.router, FIXTURE_UID));
    assert_null(router_group(&w->f.router, FIXTURE_UID)->output);
    prints(w, 0, "a");
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    is_told(w, NULL);
}

static void it_ends_with_the_session(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 0, "a");
    client_close(&w->c);
    assert_non_null(output_changed(&w->f.router));
    assert_null(router_group(&w->f.router, FIXTURE_UID)->output);
    prints(w, 0, "b");
    client_open(&w->f, &w->c, "llama");
}

static void what_is_too_fast_is_bounded_and_what_was_dropped_is_said(void **state)
{
    struct world *w = *state;
    char text[16];
    listens(w);
    for (int i = 0; i < OUTPUT_LINES_MAX + 1; i++) {
        snprintf(text, sizeof text, "%d", i);
        prints(w, 0, text);
    }
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0\",\"text\":\"0\"}]}");
    output_dropped(&w->f.router, FIXTURE_UID, 7);
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    struct wire_record *r = wire_next(&w->c.wire);
    assert_non_null(r);
    assert_non_null(strstr(r->body, "{\"ranks\":\"0\",\"text\":\"256\"}],\"dropped\":7}"));
    free(r);
    output_dropped(&w->f.router, FIXTURE_UID, 2);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[],\"dropped\":2}");
}

static void ranks_that_are_not_there_and_long_lines(void **state)
{
    struct world *w = *state;
    static char line[2 * OUTPUT_LINE_MAX + 1];
    listens(w);
    prints(w, WORLD, "a");
    memset(line, 'x', sizeof line - 1);
    prints(w, 0, line);
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    struct wire_record *r = wire_next(&w->c.wire);
    assert_non_null(r);
    assert_int_equal(r->len,
                     OUTPUT_LINE_MAX + strlen("{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0\",\"text\":\"\"}]}"));
    free(r);
}

static void a_group_that_goes_ends_it(void **state)
{
    struct world *w = *state;
    listens(w);
    prints(w, 0, "last");
    router_group_gone(&w->f.router, FIXTURE_UID);
    is_told(w, "{\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"0\",\"text\":\"last\"}]}");
    prints(w, 0, "a");
    assert_null(output_changed(&w->f.router));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(a_line_of_one_rank_comes_after_a_moment),
        PROXY_TEST(equal_lines_of_all_ranks_are_one_at_once),
        PROXY_TEST(of_some_ranks_they_are_named),
        PROXY_TEST(the_lines_of_a_rank_keep_their_order),
        PROXY_TEST(lines_far_apart_are_not_folded),
        PROXY_TEST(nobody_listens_and_nothing_is_kept),
        PROXY_TEST(it_ends_with_the_session),
        PROXY_TEST(what_is_too_fast_is_bounded_and_what_was_dropped_is_said),
        PROXY_TEST(ranks_that_are_not_there_and_long_lines),
        PROXY_TEST(a_group_that_goes_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
