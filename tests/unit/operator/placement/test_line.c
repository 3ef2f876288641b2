// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/line.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { GPU = RESOURCE_GPU, MIN_MS = 60 * 1000 };

static struct line *line;
static struct arena arena;
static int64_t now_ms;

static int setup(void **state)
{
    (void)state;
    line = line_new();
    now_ms = 1000 * MIN_MS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    line_free(line);
    arena_done(&arena);
    return 0;
}

static struct line_member member(const char *name, int32_t priority, int64_t age)
{
    return (struct line_member){name, "ml", name, KIND_WORKERGROUP, priority, -age};
}

static void wait_holding(struct line_member m, int64_t since_ms, const char *node)
{
    struct line_note note = {
        LINE_WAITS, m, .since_ms = since_ms, .short_of = GPU, .hold = &node, .n_hold = node != NULL};
    line_tell(line, &note, now_ms);
}

static void waits(struct line_member m)
{
    wait_holding(m, now_ms, NULL);
}

static void takes(struct line_member m, int resource)
{
    struct resource one = {resource, 1000};
    struct resources requests = {&one, 1};
    line_tell(line, &(struct line_note){LINE_TAKES, m, .requests = &requests}, now_ms);
}

static struct line_answer ask(struct line_member m)
{
    struct line_answer t;
    line_ask(line, &m, now_ms, &arena, &t);
    return t;
}

static void the_order_is_priority_then_age(void **state)
{
    (void)state;
    waits(member("young", 0, 1));
    waits(member("urgent", 10, 0));
    waits(member("old", 0, 9));
    waits(member("old", 0, 9)); // for a second time
    assert_int_equal(line_length(line), 3);
    assert_string_equal(line_at(line, 0)->name, "urgent");
    assert_string_equal(line_at(line, 1)->name, "old");
    assert_string_equal(line_at(line, 2)->name, "young");
    waits(member("young", 20, 1)); // the priority in its template has changed
    assert_string_equal(line_at(line, 0)->name, "young");
    line_leave(line, "old");
    line_leave(line, "stranger");
    assert_int_equal(line_length(line), 2);
}

static void nobody_is_held_up_at_first(void **state)
{
    (void)state;
    waits(member("big", 0, 9));
    struct line_answer t = ask(member("big", 0, 9));
    assert_false(t.holds);
    assert_int_equal(t.waits_since_ms, now_ms);
    assert_int_equal(t.look_again_ms, LINE_PATIENCE_MS);
    assert_int_equal(ask(member("small", 0, 1)).n_held, 0);
}

static void after_some_minutes_nodes_are_held_against_those_behind(void **state)
{
    (void)state;
    struct line_member big = member("big", 0, 9);
    waits(big);
    now_ms += LINE_PATIENCE_MS;
    assert_true(ask(big).holds);
    wait_holding(big, now_ms, "n1");
    struct line_answer t = ask(member("small", 0, 1));
    assert_int_equal(t.n_held, 1);
    assert_string_equal(t.held[0], "n1");
    assert_int_equal(t.look_again_ms, LINE_HOLD_MS);
    assert_int_equal(ask(member("urgent", 1, 0)).n_held, 0); // it is ahead
    assert_int_equal(ask(big).n_held, 0);
    assert_string_equal(ask(big).hold[0], "n1");
}

static void a_hold_that_does_not_help_ends_and_the_next_one_is_twice_as_long(void **state)
{
    (void)state;
    struct line_member big = member("big", 0, 9), small = member("small", 0, 1);
    waits(big);
    now_ms += LINE_PATIENCE_MS;
    for (int64_t ms = LINE_HOLD_MS; ms <= LINE_HOLD_MS * 8; ms *= 2) {
        wait_holding(big, now_ms, "n1");
        now_ms += ms - 1;
        wait_holding(big, now_ms, "n2"); // another node continues the same hold
        assert_string_equal(ask(small).held[0], "n2");
        now_ms += 1;
        assert_int_equal(ask(small).n_held, 0);
        assert_false(ask(big).holds);
        assert_int_equal(ask(big).look_again_ms, ms);
        waits(big);
        now_ms += ms;
        assert_true(ask(big).holds);
    }
}

static void being_passed_too_often_is_enough(void **state)
{
    (void)state;
    struct line_member big = member("big", 0, 9);
    waits(big);
    for (int i = 0; i < LINE_PASSES; i++) {
        assert_false(ask(big).holds);
        takes(member("cpu only", 0, 1), RESOURCE_CPU);
        takes(member("ahead", 0, 99), GPU);
        takes(member("small", 0, 1), GPU);
    }
    assert_true(ask(big).holds);
}

static void what_takes_room_leaves_the_line(void **state)
{
    (void)state;
    waits(member("big", 0, 9));
    takes(member("big", 0, 9), GPU);
    assert_int_equal(line_length(line), 0);
    assert_int_equal(ask(member("big", 0, 9)).waits_since_ms, 0);
}

static void nodes_are_held_for_a_few_only(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    int64_t since = now_ms - LINE_PATIENCE_MS;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        wait_holding(member(names[i], 0, 9 - (int64_t)i), since, NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct line_member m = member(names[i], 0, 9 - (int64_t)i);
        assert_int_equal(ask(m).holds, i < LINE_HOLDERS);
        assert_int_equal(ask(m).n_held, i);
        if (i < LINE_HOLDERS)
            wait_holding(m, since, names[i]);
        else
            break;
    }
}

static void a_new_leader_goes_on_where_the_old_one_was(void **state)
{
    (void)state;
    struct line_member big = member("big", 0, 9);
    wait_holding(big, now_ms - 21 * MIN_MS, NULL);
    assert_true(ask(big).holds);
    wait_holding(big, now_ms, "n1");
    assert_int_equal(ask(member("small", 0, 1)).look_again_ms, 20 * MIN_MS);
}

static void a_clock_that_is_set_back_makes_no_hold_longer(void **state)
{
    (void)state;
    struct line_member big = member("big", 0, 9);
    wait_holding(big, now_ms - LINE_PATIENCE_MS, NULL);
    wait_holding(big, now_ms, "n1");
    now_ms -= 600 * MIN_MS;
    wait_holding(big, now_ms, "n1");
    assert_int_equal(ask(big).look_again_ms, LINE_HOLD_MS);
}

static void it_can_be_told_who_is_ahead(void **state)
{
    (void)state;
    struct line_member last = member("last", 0, 0);
    now_ms = 0;
    assert_null(line_ahead(line, &last, GPU, &arena));
    waits(member("a", 0, 5));
    waits(last);
    assert_string_equal(line_ahead(line, &last, GPU, &arena), "WorkerGroup ml/a since 1970-01-01T00:00:00Z");
    assert_null(line_ahead(line, &last, RESOURCE_MEMORY, &arena));
    waits(member("b", 0, 4));
    waits(member("c", 0, 3));
    waits(member("d", 0, 2));
    assert_string_equal(line_ahead(line, &last, GPU, &arena),
                        "WorkerGroup ml/a since 1970-01-01T00:00:00Z, WorkerGroup ml/b since 1970-01-01T00:00:00Z, "
                        "WorkerGroup ml/c since 1970-01-01T00:00:00Z; 1 more");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_order_is_priority_then_age),
        T(nobody_is_held_up_at_first),
        T(after_some_minutes_nodes_are_held_against_those_behind),
        T(a_hold_that_does_not_help_ends_and_the_next_one_is_twice_as_long),
        T(being_passed_too_often_is_enough),
        T(what_takes_room_leaves_the_line),
        T(nodes_are_held_for_a_few_only),
        T(a_new_leader_goes_on_where_the_old_one_was),
        T(a_clock_that_is_set_back_makes_no_hold_longer),
        T(it_can_be_told_who_is_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
