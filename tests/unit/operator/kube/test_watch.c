// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct watch w;

static int setup(void **state)
{
    (void)state;
    watch_init(&w, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    watch_done(&w);
    return 0;
}

// A history lists what happens and what the machine answers, so each test reads as a table.
enum what { PAGE, SAW, END, NEXT };

struct event {
    enum what what;
    const char *text;         // PAGE: resourceVersion; SAW: resourceVersion; NEXT: "action [version or token]"
    const char *token;        // PAGE: continue
    int code, status;         // END
    int64_t retry_after_ms;   // END
    int64_t wait_lo, wait_hi; // NEXT with a wait
};

#define PAGE_DONE(version, next)                         \
    {                                                    \
        .what = PAGE, .text = (version), .token = (next) \
    }
#define SEES(version)                  \
    {                                  \
        .what = SAW, .text = (version) \
    }
#define ENDS(error)                  \
    {                                \
        .what = END, .code = (error) \
    }
#define FAILS(error, http)                             \
    {                                                  \
        .what = END, .code = (error), .status = (http) \
    }
#define DOES(action)                   \
    {                                  \
        .what = NEXT, .text = (action) \
    }
#define WAITS(lo, hi)                                                  \
    {                                                                  \
        .what = NEXT, .text = "WAIT", .wait_lo = (lo), .wait_hi = (hi) \
    }
#define QUICKLY WAITS(100, 800)

static void describe(const struct watch_step *s, char *out, size_t size)
{
    static const char *const names[] = {"LIST", "PAGE", "SWAP", "WATCH", "WAIT"};
    const char *detail = s->action == WATCH_DO_PAGE    ? s->continue_token
                         : s->action == WATCH_DO_WATCH ? s->resource_version
                                                       : NULL;
    snprintf(out, size, "%s%s%s", names[s->action], detail ? " " : "", detail ? detail : "");
}

static void check_next(const struct event *e, size_t line)
{
    char got[128];
    struct watch_step s = watch_next(&w);
    describe(&s, got, sizeof got);
    if (strcmp(got, e->text) != 0)
        fail_msg("event %zu: %s, not %s", line, got, e->text);
    if (s.action == WATCH_DO_WAIT && (s.wait_ms < e->wait_lo || s.wait_ms > e->wait_hi))
        fail_msg("event %zu: waits %d ms, not %d to %d", line, (int)s.wait_ms, (int)e->wait_lo, (int)e->wait_hi);
}

static void play(const struct event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct event *e = &events[i];
        struct err err = {.code = e->code, .http_status = e->status, .retry_after_ms = e->retry_after_ms};
        switch (e->what) {
        case PAGE:
            watch_page_done(&w, e->text, e->token);
            break;
        case SAW:
            watch_saw(&w, e->text);
            break;
        case END:
            watch_ended(&w, &err);
            break;
        case NEXT:
            check_next(e, i);
            break;
        }
    }
}
#define PLAY(...) \
    play((const struct event[]){__VA_ARGS__}, sizeof((const struct event[]){__VA_ARGS__}) / sizeof(struct event))

// The history up to the first watch, from version 10.
#define LISTED DOES("LIST"), PAGE_DONE("10", ""), DOES("SWAP"), DOES("WATCH 10")

static void it_lists_page_by_page_and_then_watches(void **state)
{
    (void)state;
    PLAY(DOES("LIST"), PAGE_DONE("10", "t1"), ENDS(0), DOES("PAGE t1"), PAGE_DONE("10", "t2"), DOES("PAGE t2"),
         PAGE_DONE("10", NULL), DOES("SWAP"), DOES("WATCH 10"));
    assert_int_equal(w.state, WATCH_STATE_WATCHING);
}

static void a_watch_that_ends_in_good_order_goes_on_where_it_was(void **state)
{
    (void)state;
    PLAY(LISTED, SEES("11"), SEES("15"), ENDS(0), DOES("WATCH 15"), SEES("16"), ENDS(0), DOES("WATCH 16"));
}

static void so_does_one_that_idles_out_after_bookmarks(void **state)
{
    (void)state;
    PLAY(LISTED, SEES("11"), ENDS(ERR_TIMEOUT), DOES("WATCH 11"));
}

static void watches_that_bring_nothing_are_spaced_out(void **state)
{
    (void)state;
    PLAY(LISTED, ENDS(0), DOES("WATCH 10"), ENDS(0), QUICKLY, DOES("WATCH 10"), ENDS(ERR_TIMEOUT), WAITS(750, 1250),
         DOES("WATCH 10"), SEES("11"), ENDS(0), DOES("WATCH 11"), ENDS(0), DOES("WATCH 11"));
}

static void a_410_lists_again_at_once(void **state)
{
    (void)state;
    PLAY(LISTED, SEES("11"), FAILS(ERR_GONE, 410), DOES("LIST"), PAGE_DONE("20", ""), DOES("SWAP"), DOES("WATCH 20"));
}

static void a_410_that_repeats_is_spaced_out_although_each_list_succeeds(void **state)
{
    (void)state;
    PLAY(LISTED, FAILS(ERR_GONE, 410), LISTED, FAILS(ERR_GONE, 410), QUICKLY, LISTED, FAILS(ERR_GONE, 410),
         WAITS(750, 1250), LISTED, FAILS(ERR_GONE, 410), WAITS(1500, 2500), LISTED, SEES("11"), FAILS(ERR_GONE, 410),
         LISTED);
}

static void an_expired_continue_token_begins_the_list_again(void **state)
{
    (void)state;
    PLAY(DOES("LIST"), PAGE_DONE("10", "t1"), DOES("PAGE t1"), FAILS(ERR_GONE, 410), DOES("LIST"),
         PAGE_DONE("12", "t9"), DOES("PAGE t9"), PAGE_DONE("12", ""), DOES("SWAP"), DOES("WATCH 12"));
}

static void a_failing_page_is_asked_for_again(void **state)
{
    (void)state;
    PLAY(DOES("LIST"), FAILS(ERR_IO, 0), QUICKLY, DOES("LIST"), PAGE_DONE("10", "t1"), DOES("PAGE t1"),
         FAILS(ERR_UNAVAILABLE, 503), QUICKLY, DOES("PAGE t1"), PAGE_DONE("10", ""), DOES("SWAP"), DOES("WATCH 10"));
}

static void failures_back_off_from_1_s_to_4_s_after_a_quick_first_retry(void **state)
{
    (void)state;
    PLAY(LISTED, ENDS(ERR_IO), QUICKLY, DOES("WATCH 10"), ENDS(ERR_IO), WAITS(750, 1250), DOES("WATCH 10"),
         ENDS(ERR_IO), WAITS(1500, 2500), DOES("WATCH 10"), ENDS(ERR_IO), WAITS(3000, 5000), DOES("WATCH 10"),
         ENDS(ERR_IO), WAITS(3000, 5000), DOES("WATCH 10"), ENDS(ERR_IO), WAITS(3000, 5000), DOES("WATCH 10"));
}

static void progress_forgets_the_failures(void **state)
{
    (void)state;
    PLAY(LISTED, ENDS(ERR_IO), QUICKLY, DOES("WATCH 10"), ENDS(ERR_IO), WAITS(750, 1250), DOES("WATCH 10"), SEES("11"),
         ENDS(ERR_IO), QUICKLY, DOES("WATCH 11"));
}

static void retry_after_is_honoured(void **state)
{
    (void)state;
    PLAY(LISTED, {.what = END, .code = ERR_THROTTLED, .status = 429, .retry_after_ms = 7000}, WAITS(7000, 7000),
         DOES("WATCH 10"), {.what = END, .code = ERR_UNAVAILABLE, .status = 503, .retry_after_ms = 1}, WAITS(750, 1250),
         DOES("WATCH 10"), {.what = END, .code = ERR_THROTTLED, .status = 429, .retry_after_ms = INT64_MAX},
         WAITS(300000, 300000), DOES("WATCH 10"), ENDS(ERR_IO), WAITS(3000, 5000));
}

static void a_410_with_retry_after_waits_too(void **state)
{
    (void)state;
    PLAY(LISTED, {.what = END, .code = ERR_GONE, .status = 410, .retry_after_ms = 3000}, WAITS(3000, 3000),
         DOES("LIST"));
}

static void what_the_server_forbids_is_tried_ever_more_slowly(void **state)
{
    (void)state;
    PLAY(DOES("LIST"), FAILS(ERR_FORBIDDEN, 403), QUICKLY, DOES("LIST"), FAILS(ERR_UNAUTHORIZED, 401), WAITS(750, 1250),
         DOES("LIST"), FAILS(ERR_NOT_FOUND, 404), WAITS(1500, 2500), DOES("LIST"));
}

// For example, after the data of the server was restored from an older backup.
static void a_version_that_the_server_keeps_refusing_is_listed_again(void **state)
{
    (void)state;
    PLAY(LISTED, FAILS(ERR_TIMEOUT, 504), QUICKLY, DOES("WATCH 10"), FAILS(ERR_TIMEOUT, 504), WAITS(750, 1250),
         DOES("WATCH 10"), FAILS(ERR_INVALID, 400), WAITS(1500, 2500), DOES("WATCH 10"), FAILS(ERR_TIMEOUT, 504),
         WAITS(3000, 5000), DOES("WATCH 10"), FAILS(ERR_TIMEOUT, 504), WAITS(3000, 5000), DOES("LIST"),
         PAGE_DONE("3", ""), DOES("SWAP"), DOES("WATCH 3"));
}

static void but_not_if_it_only_asks_for_time_or_cannot_be_reached(void **state)
{
    (void)state;
    PLAY(LISTED);
    for (int i = 0; i < 20; i++) {
        PLAY(FAILS(ERR_THROTTLED, 429), WAITS(100, 5000), DOES("WATCH 10"));
        PLAY(ENDS(ERR_IO), WAITS(100, 5000), DOES("WATCH 10"));
    }
}

static void the_server_is_asked_to_end_a_watch_after_290_to_590_s(void **state)
{
    (void)state;
    int32_t lo = INT32_MAX, hi = 0;
    PLAY(LISTED);
    for (int i = 0; i < 2000; i++) {
        watch_saw(&w, "10");
        watch_ended(&w, &(struct err){0});
        struct watch_step s = watch_next(&w);
        assert_int_equal(s.action, WATCH_DO_WATCH);
        assert_true(s.idle_ms > (int64_t)s.timeout_s * 1000);
        lo = MIN(lo, s.timeout_s);
        hi = MAX(hi, s.timeout_s);
    }
    assert_true(lo >= 290 && lo < 300);
    assert_true(hi <= 590 && hi > 580);
}

static void a_version_that_cannot_be_kept_leaves_the_last_one(void **state)
{
    (void)state;
    char huge[sizeof w.resource_version + 1];
    memset(huge, '1', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    PLAY(LISTED, SEES(""), SEES(NULL), SEES(huge), ENDS(0), DOES("WATCH 10"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_lists_page_by_page_and_then_watches),
        TEST(a_watch_that_ends_in_good_order_goes_on_where_it_was),
        TEST(so_does_one_that_idles_out_after_bookmarks),
        TEST(watches_that_bring_nothing_are_spaced_out),
        TEST(a_410_lists_again_at_once),
        TEST(a_410_that_repeats_is_spaced_out_although_each_list_succeeds),
        TEST(an_expired_continue_token_begins_the_list_again),
        TEST(a_failing_page_is_asked_for_again),
        TEST(failures_back_off_from_1_s_to_4_s_after_a_quick_first_retry),
        TEST(progress_forgets_the_failures),
        TEST(retry_after_is_honoured),
        TEST(a_410_with_retry_after_waits_too),
        TEST(what_the_server_forbids_is_tried_ever_more_slowly),
        TEST(a_version_that_the_server_keeps_refusing_is_listed_again),
        TEST(but_not_if_it_only_asks_for_time_or_cannot_be_reached),
        TEST(the_server_is_asked_to_end_a_watch_after_290_to_590_s),
        TEST(a_version_that_cannot_be_kept_leaves_the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
