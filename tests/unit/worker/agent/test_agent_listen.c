// SPDX-License-Identifier: Apache-2.0
// Lines of processes, for an operator that listens.
#include "worker/agent/agent_listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct listen l;

static int setup(void **state)
{
    (void)state;
    listen_init(&l);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    listen_done(&l);
    return 0;
}

static void told(const char *body)
{
    listen_command(&l, body, strlen(body));
}

static bool says(const char *group, int rank, const char *text)
{
    return listen_line(&l, group, rank, text, strlen(text));
}

static void sends(const char *want)
{
    struct json_writer w;
    bool some = listen_next(&l, &w);
    assert_int_equal(some, want != NULL);
    if (!some)
        return;
    assert_string_equal(buf_str(&w.buf), want);
    writer_done(&w);
}

static void lines_go_out_only_while_somebody_listens(void **state)
{
    (void)state;
    assert_false(says("u1", 0, "early"));
    told("{\"group\":\"u1\",\"listen\":true}");
    told("{\"group\":\"u1\",\"listen\":true}");
    assert_true(says("u1", 0, "a\"b"));
    assert_false(says("u1", 3, "c")); // it is sent together with the first line
    assert_false(says("u2", 0, "of another group"));
    sends("{\"group\":\"u1\",\"lines\":[[0,\"a\\\"b\"],[3,\"c\"]]}");
    sends(NULL);
    assert_true(says("u1", 0, "last"));
    told("{\"group\":\"u1\",\"listen\":false}");
    assert_false(says("u1", 0, "late"));
    sends(NULL);
}

static void what_comes_too_fast_is_counted(void **state)
{
    static char line[2 * LISTEN_LINE_MAX];
    (void)state;
    memset(line, 'x', sizeof line - 1);
    told("{\"group\":\"u1\",\"listen\":true}");
    for (int i = 0; i < 20; i++) // 4 KiB each
        says("u1", 0, line);
    struct json_writer w;
    assert_true(listen_next(&l, &w));
    assert_true(w.buf.len < LISTEN_BATCH_MAX + 2 * LISTEN_LINE_MAX);
    assert_non_null(strstr(buf_str(&w.buf), "],\"dropped\":4}"));
    writer_done(&w);
    assert_true(says("u1", 0, "goes on"));
    sends("{\"group\":\"u1\",\"lines\":[[0,\"goes on\"]]}");
}

static void nonsense_is_passed_over(void **state)
{
    (void)state;
    told("");
    told("{");
    told("[]");
    told("{\"listen\":true}");
    told("{\"group\":7,\"listen\":true}");
    told("{\"group\":\"u1\"}");
    assert_int_equal(l.n_groups, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_go_out_only_while_somebody_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_too_fast_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_passed_over, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
