// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/ws/memory.h"
#include "worker/host/cow_args.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 3 * POOL_STEP };

struct fixture {
    struct memory *memory; // of the sender
    char *sent;            // arguments in it
    struct area *area;     // the same memory, as the receiver has it
};

static void fill(struct fixture *f, char value)
{
    memset(f->sent, value, LEN);
}

static int setup(void **state)
{
    static struct fixture f;
    struct err err = ERR_INIT;
    f.memory = memory_new(16 * POOL_STEP, &err);
    assert_non_null(f.memory);
    assert_non_null(pool_take(memory_pool(f.memory), 1));
    f.sent = pool_take(memory_pool(f.memory), LEN);
    const struct area *a = memory_area(f.memory);
    f.area = memory_open(getpid(), a->fd, a->size, true, &err);
    assert_non_null(f.area);
    fill(&f, 'a');
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    cow_args_end(NULL); // frees what was let go last
    area_unref(f->area);
    memory_free(f->memory);
    return 0;
}

static const char *place(const struct fixture *f)
{
    return f->area->base + (f->sent - memory_area(f->memory)->base);
}

static struct cow_args *take(const struct fixture *f)
{
    return cow_args_new(f->area, place(f), LEN);
}

static void end(struct cow_args *s)
{
    cow_args_settle(s);
    cow_args_end(s);
}

static void assert_all(const struct cow_args *s, char value)
{
    for (size_t i = 0; i < LEN; i++)
        assert_int_equal(cow_args_data(s)[i], value);
}

// New arguments have this value, and are not kept.
static void shows(const struct fixture *f, char value)
{
    struct cow_args *s = take(f);
    assert_non_null(s);
    assert_all(s, value);
    cow_args_let_go(s);
    end(s);
}

static void arguments_lie_where_they_were_sent(void **state)
{
    struct fixture *f = *state;
    for (char value = 'a'; value < 'f'; value++) {
        fill(f, value);
        shows(f, value);
    }
}

static void what_is_written_there_only_the_writer_sees(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = take(f);
    cow_args_data(s)[POOL_STEP] = 'x';
    assert_int_equal(f->sent[POOL_STEP], 'a');
    assert_int_equal(place(f)[POOL_STEP], 'a');
    cow_args_let_go(s);
    end(s);
    fill(f, 'b');
    shows(f, 'b');
}

static void what_is_kept_stays_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = take(f);
    cow_args_data(s)[0] = 'a';
    end(s);
    fill(f, 'b');
    assert_all(s, 'a');
    assert_int_equal(place(f)[0], 'b'); // for a reader that does not map it
    assert_null(take(f));
    cow_args_let_go(s);
    shows(f, 'b');
}

static void what_is_let_go_while_its_call_ends_is_clean(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = take(f);
    cow_args_settle(s);
    cow_args_let_go(s);
    cow_args_end(s);
    fill(f, 'b');
    shows(f, 'b');
}

static void others_beside_it_have_a_place(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = cow_args_new(f->area, place(f) + 1, 1);
    assert_null(cow_args_new(f->area, place(f) + 2, 1)); // on the same page
    struct cow_args *other = cow_args_new(f->area, place(f) + POOL_STEP, 1);
    assert_non_null(other);
    assert_int_equal(cow_args_data(s)[0], 'a');
    cow_args_let_go(s);
    cow_args_let_go(other);
    end(s);
    end(other);
}

static void it_outlives_its_area(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = take(f);
    end(s);
    area_unref(f->area);
    assert_all(s, 'a');
    cow_args_let_go(s);
    struct err err = ERR_INIT;
    const struct area *a = memory_area(f->memory);
    f->area = memory_open(getpid(), a->fd, a->size, true, &err);
}

static void too_much_is_not_kept(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct memory *m = memory_new(COW_ARGS_KEPT_MAX + POOL_STEP, &err);
    assert_non_null(m);
    const struct area *own = memory_area(m);
    struct area *a = memory_open(getpid(), own->fd, own->size, true, &err);
    struct cow_args *s = cow_args_new(a, a->base, COW_ARGS_KEPT_MAX);
    end(s);
    assert_null(take(f));
    cow_args_let_go(s);
    s = take(f);
    assert_non_null(s);
    cow_args_let_go(s);
    end(s);
    area_unref(a);
    memory_free(m);
}

static void without_a_mapping_of_its_own_there_is_none(void **state)
{
    const struct fixture *f = *state;
    assert_null(cow_args_new(memory_area(f->memory), f->sent, LEN));
}

static void locked_memory_shows_what_was_sent_last(void **state)
{
    struct fixture *f = *state;
    if (syscall(SYS_mlock, f->area->own, f->area->size) < 0) // mlock() does nothing if there are sanitizers
        skip();                                              // this user may not lock so much
    fill(f, 'b');
    shows(f, 'b');
}

static void after_a_short_one_a_longer_one_of_locked_memory_shows_what_was_sent_last(void **state)
{
    struct fixture *f = *state;
    if (syscall(SYS_mlock, f->area->own, f->area->size) < 0)
        skip();
    struct cow_args *s = cow_args_new(f->area, place(f), 1);
    cow_args_let_go(s);
    end(s);
    fill(f, 'b');
    shows(f, 'b');
}

static void a_fork_while_a_call_ends_leaves_no_old_values(void **state)
{
    struct fixture *f = *state;
    int status;
    struct cow_args *s = cow_args_new(f->area, place(f) + POOL_STEP, LEN - POOL_STEP);
    cow_args_let_go(s);
    cow_args_settle(s);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, &status, 0), child);
    cow_args_end(s);
    fill(f, 'b');
    shows(f, 'b');
}

static void all_stay_as_they_were_from_the_end_of_a_connection_on(void **state)
{
    struct fixture *f = *state;
    struct cow_args *s = take(f);
    cow_args_keep_all();
    fill(f, 'b');
    assert_all(s, 'a');
    cow_args_let_go(s);
    end(s);
    shows(f, 'b');
}

static void a_child_sees_what_its_parent_saw(void **state)
{
    struct fixture *f = *state;
    int go[2], status;
    char word;
    struct cow_args *s = take(f);
    assert_int_equal(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]); // the child ends with its parent
        bool same = read(go[0], &word, 1) == 1;
        for (size_t i = 0; i < LEN; i++)
            same = same && cow_args_data(s)[i] == 'a';
        _exit(same ? 0 : 1);
    }
    cow_args_let_go(s);
    end(s);
    fill(f, 'b');
    assert_int_equal(write(go[1], "x", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(go[0]);
    close(go[1]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(arguments_lie_where_they_were_sent),
        TEST(what_is_written_there_only_the_writer_sees),
        TEST(what_is_kept_stays_as_it_was),
        TEST(what_is_let_go_while_its_call_ends_is_clean),
        TEST(others_beside_it_have_a_place),
        TEST(it_outlives_its_area),
        TEST(too_much_is_not_kept),
        TEST(without_a_mapping_of_its_own_there_is_none),
        TEST(locked_memory_shows_what_was_sent_last),
        TEST(after_a_short_one_a_longer_one_of_locked_memory_shows_what_was_sent_last),
        TEST(a_fork_while_a_call_ends_leaves_no_old_values),
        TEST(all_stay_as_they_were_from_the_end_of_a_connection_on),
        TEST(a_child_sees_what_its_parent_saw),
    };
    cow_args_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
