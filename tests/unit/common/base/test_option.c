// SPDX-License-Identifier: Apache-2.0
#include "common/base/option.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct options {
    const char *text;
    bool flag, yes;
    int number;
    size_t length;
    int64_t time_ms;
};

static const char *set_length(void *options, const char *value)
{
    ((struct options *)options)->length = strlen(value);
    return *value ? NULL : "must not be empty";
}

static const struct option_row rows[] = {
    {"text", OPTION_TEXT, offsetof(struct options, text), .letter = 't'},
    {"flag", OPTION_FLAG, offsetof(struct options, flag), .letter = 'f'},
    {"yes", OPTION_BOOL, offsetof(struct options, yes)},
    {"number", OPTION_NUMBER, offsetof(struct options, number), -1, 9},
    {"length", OPTION_SET, .set = set_length},
    {"time", OPTION_TIME, offsetof(struct options, time_ms)},
    {0},
};

static const struct option_program program = {"prog", "help\n", rows, .usage = 64};

// The status, or -1; *ret_rest: the first argument that is not an option.
static int parse(struct options *o, int *ret_rest, const char *words)
{
    char text[256], name[] = "prog", *argv[16] = {name};
    int argc = 1;
    snprintf(text, sizeof text, "%s", words);
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    *o = (struct options){.number = 7};
    optind = 1;
    int r = option_parse(&program, argc, argv, o);
    *ret_rest = optind;
    return r;
}

static void each_kind_reads_its_value(void **state)
{
    (void)state;
    struct options o;
    int rest;
    assert_int_equal(parse(&o, &rest, "--flag --yes --number=-1 --length four --time=2m -- --text"), -1);
    assert_true(o.flag && o.yes && o.number == -1 && o.length == 4 && o.time_ms == 120000 && !o.text);
    assert_int_equal(rest, 8);
    assert_int_equal(parse(&o, &rest, "--yes=false -ft x"), -1);
    assert_true(o.flag && !o.yes && o.number == 7 && strcmp(o.text, "x") == 0);
}

static void reading_ends_at_the_first_argument(void **state)
{
    (void)state;
    struct options o;
    int rest;
    assert_int_equal(parse(&o, &rest, "command --flag"), -1);
    assert_true(!o.flag && rest == 1);
}

static void a_wrong_value_ends_it(void **state)
{
    (void)state;
    static const char *const wrong[] = {"--yes=perhaps", "--number 10", "--number x", "--number",
                                        "--unknown",     "--length=",   "--time 0s",  "--time 5"};
    struct options o;
    int rest;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(parse(&o, &rest, wrong[i]), 64);
}

static void help_and_version_end_with_0(void **state)
{
    (void)state;
    struct options o;
    int rest;
    assert_int_equal(parse(&o, &rest, "--help --number x"), 0);
    assert_int_equal(parse(&o, &rest, "--version"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_reads_its_value),
        cmocka_unit_test(reading_ends_at_the_first_argument),
        cmocka_unit_test(a_wrong_value_ends_it),
        cmocka_unit_test(help_and_version_end_with_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
