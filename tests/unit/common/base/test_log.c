// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include "common/base/str.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char line[64 * 1024];
static FILE *capture;
static int real_stderr;

static int setup(void **state)
{
    (void)state;
    capture = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    return capture && real_stderr >= 0 && dup2(fileno(capture), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    fclose(capture);
    log_setup(LOG_INFO, LOG_JSON);
    return 0;
}

// Returns the text written since the last call, without its time.
static const char *written(void)
{
    long end = lseek(STDERR_FILENO, 0, SEEK_END);
    ssize_t n = pread(STDERR_FILENO, line, sizeof line - 1, 0);
    assert_true(n >= 0 && n == end);
    line[n] = '\0';
    assert_int_equal(ftruncate(STDERR_FILENO, 0), 0);
    lseek(STDERR_FILENO, 0, SEEK_SET);
    const char *rest = strstr(line, "Z");
    return !rest ? "" : rest + 1;
}

static void a_line_is_one_json_object(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_JSON);
    log_info("placed", "name", "llama", "nodes", log_i64(-3), NULL);
    assert_string_equal(written(), "\",\"level\":\"info\",\"msg\":\"placed\",\"name\":\"llama\",\"nodes\":\"-3\"}\n");
}

static void what_json_cannot_hold_is_escaped(void **state)
{
    (void)state;
    log_error("a\"b\\c\nd\te\x01", NULL);
    assert_string_equal(written(), "\",\"level\":\"error\",\"msg\":\"a\\\"b\\\\c\\nd\\u0009e\\u0001\"}\n");
}

static void bytes_that_are_not_utf8_become_a_mark(void **state)
{
    (void)state;
    log_info("x", "tail", "ok \xc3\xa9 bad \xff\xc3", NULL);
    const char *text = written();
    assert_true(str_utf8_valid(text, strlen(text)));
    assert_non_null(strstr(text, "\"ok \xc3\xa9 bad \xef\xbf\xbd\xef\xbf\xbd\"}\n"));
}

static void a_null_value_drops_its_pair(void **state)
{
    (void)state;
    log_info("x", "node", NULL, "name", "a", NULL);
    assert_string_equal(written(), "\",\"level\":\"info\",\"msg\":\"x\",\"name\":\"a\"}\n");
}

static void levels_below_the_threshold_are_silent(void **state)
{
    (void)state;
    log_setup(LOG_WARN, LOG_JSON);
    log_info("x", NULL);
    log_debug("x", NULL);
    assert_string_equal(written(), "");
    log_warn("x", NULL);
    assert_string_not_equal(written(), "");
    assert_true(log_enabled(LOG_ERROR) && !log_enabled(LOG_INFO));
}

static void text_is_for_people(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT);
    log_warn("lost the lease", "holder", "pod-b", NULL);
    assert_string_equal(written(), " warn  lost the lease holder=\"pod-b\"\n");
}

static void an_endless_line_is_cut_and_stays_json(void **state)
{
    (void)state;
    static char big[40 * 1024];
    memset(big, 'x', sizeof big - 1);
    log_info("short", "a", "1", "big", big, "b", "2", NULL);
    const char *text = written();
    assert_true(strlen(text) < 20 * 1024);
    assert_true(text_ends(text, "\"}\n"));
    assert_non_null(strstr(text, "\"a\":\"1\""));
    log_info(big, "a", "1", NULL);
    text = written();
    assert_true(strlen(text) < 20 * 1024);
    assert_true(text_ends(text, "\"}\n"));
}

static void level_names_are_parsed(void **state)
{
    (void)state;
    enum log_level level = LOG_INFO;
    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    assert_true(log_level_parse("error", &level) && level == LOG_ERROR);
    assert_false(log_level_parse("verbose", &level) || log_level_parse(NULL, &level));
    assert_int_equal(level, LOG_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define LOG_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        LOG_TEST(a_line_is_one_json_object),
        LOG_TEST(what_json_cannot_hold_is_escaped),
        LOG_TEST(bytes_that_are_not_utf8_become_a_mark),
        LOG_TEST(a_null_value_drops_its_pair),
        LOG_TEST(levels_below_the_threshold_are_silent),
        LOG_TEST(text_is_for_people),
        LOG_TEST(an_endless_line_is_cut_and_stays_json),
        cmocka_unit_test(level_names_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
