// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call_run.h"

#include "common/base/mem.h"
#include "worker/host/host_process.h"
#include "worker/host/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char answer[8192]; // the body of the last answer

// Runs a function as a method. Returns true if it answered with a RESULT.
static bool run(cadre_result (*fn)(void *, cadre_call *), const char *args)
{
    struct cadre_call c;
    struct buf out = BUF_INIT(sizeof answer - 1);
    const cadre_method m = {"foo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, fn, NULL};
    call_init(&c, args, strlen(args));
    call_run(&c, &m, NULL);
    bool ok = call_encode(&c, &out);
    assert_false(out.over);
    memcpy(answer, buf_str(&out), out.len + 1);
    buf_done(&out);
    call_done(&c);
    return ok;
}

#define assert_result(fn, args, want)        \
    do {                                     \
        assert_true(run(fn, args));          \
        assert_string_equal(answer, (want)); \
    } while (0)

#define assert_says(fn, args, code, message, more)                                                  \
    do {                                                                                            \
        assert_false(run(fn, args));                                                                \
        assert_string_equal(answer, "{\"code\":\"" code "\",\"message\":\"" message "\"" more "}"); \
    } while (0)
#define assert_error(fn, args, code, message) assert_says(fn, args, code, message, "")
#define assert_unrun(fn, args, code, message) assert_says(fn, args, code, message, ",\"ran\":false")

static cadre_result plus(void *self, cadre_call *call)
{
    double x, y;
    (void)self;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_double(call, 1, "y", &y);
    return r == CADRE_OK ? cadre_return_double(call, x + y) : r;
}

static void arguments_come_by_position_or_by_name(void **state)
{
    (void)state;
    assert_result(plus, "[1,2]", "3");
    assert_result(plus, "{\"y\":0.5,\"x\":-2e1}", "-19.5");
    assert_result(plus, " [ 1 , 2 , \"left alone\" ] ", "3");
    assert_result(plus, "{\"x\":1,\"\\u0079\":2}", "3");
    assert_error(plus, "[1]", "INVALID", "foo() needs an argument 'y' (position 1)");
    assert_error(plus, "{\"y\":1}", "INVALID", "foo() needs an argument 'x' (position 0)");
    assert_error(plus, "", "INVALID", "foo() needs an argument 'x' (position 0)");
}

static cadre_result plus_only(void *self, cadre_call *call)
{
    cadre_result r = cadre_args_only(call, "x", "y", NULL);
    return r == CADRE_OK ? plus(self, call) : r;
}

static cadre_result takes_none(void *self, cadre_call *call)
{
    (void)self;
    return cadre_args_only(call, NULL);
}

static void arguments_that_a_method_does_not_take_are_refused_where_it_says_so(void **state)
{
    (void)state;
    assert_result(plus_only, "[1,2]", "3");
    assert_result(plus_only, "{\"y\":2,\"x\":1}", "3");
    assert_error(plus_only, "[1,2,3]", "INVALID", "foo() was called with 3 arguments; it takes x, y");
    assert_error(plus_only, "{\"x\":1,\"y\":2,\"zz\":3}", "INVALID", "foo() has no argument 'zz'; it takes x, y");
    assert_error(plus_only, "[1]", "INVALID", "foo() needs an argument 'y' (position 1)");
    assert_result(takes_none, "[]", "null");
    assert_result(takes_none, "{}", "null");
    assert_result(takes_none, "", "null");
    assert_error(takes_none, "[5]", "INVALID", "foo() was called with 1 argument; it takes no arguments");
    assert_error(takes_none, "{\"zz\":3}", "INVALID", "foo() has no argument 'zz'; it takes no arguments");
}

static cadre_result look_up(void *self, cadre_call *call)
{
    double key;
    (void)self;
    if (cadre_arg_double(call, 0, "key", &key) == CADRE_NOT_FOUND)
        key = 7;
    cadre_fail(call, "nothing is kept under %g", key);
    return CADRE_NOT_FOUND;
}

static void what_a_method_does_not_find_is_not_a_missing_argument(void **state)
{
    (void)state;
    assert_error(look_up, "[1]", "NOT_FOUND", "nothing is kept under 1");
    assert_error(look_up, "[]", "NOT_FOUND", "nothing is kept under 7");
}

static void arguments_of_another_type_are_refused_by_name(void **state)
{
    (void)state;
    assert_error(plus, "[1,\"2\"]", "INVALID",
                 "foo(): argument 'y' must be a number that fits a double, it is string \\\"2\\\"");
    assert_error(plus, "[null,2]", "INVALID", "foo(): argument 'x' must be a number that fits a double, it is null");
    assert_error(plus, "[1e999,2]", "INVALID",
                 "foo(): argument 'x' must be a number that fits a double, it is number 1e999");
    assert_error(plus, "[1000000000000000000000000000000000000000000e999,2]", "INVALID",
                 "foo(): argument 'x' must be a number that fits a double, it is number, 47 bytes long");
}

static void what_is_no_list_or_object_is_refused_before_the_method_runs(void **state)
{
    (void)state;
    assert_unrun(plus, "3", "INVALID",
                 "foo(): the arguments are a number; they must be a list (by position) or an object (by name)");
    assert_false(run(plus, "[1,"));
    assert_non_null(
        strstr(answer, "\"INVALID\",\"message\":\"foo(): the arguments cannot be read: not valid JSON at byte 3"));
    static const char *const no_numbers[] = {"[NaN]", "[1, -Infinity]", "{\"x\": Infinity}"}; // as in Python
    for (size_t i = 0; i < ARRAY_LEN(no_numbers); i++) {
        assert_false(run(plus, no_numbers[i]));
        assert_non_null(
            strstr(answer, "\"INVALID\",\"message\":\"foo(): the arguments cannot be read: not valid JSON at byte"));
    }
}

static void arguments_that_are_nested_too_deep_are_refused_with_the_limit(void **state)
{
    (void)state;
    char args[2 * JSON_DEPTH_MAX + 3] = "";
    memset(args, '[', JSON_DEPTH_MAX + 1);
    memset(args + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_unrun(plus, args, "INVALID", "foo(): the arguments cannot be read: JSON is nested deeper than 128 levels");
}

static void too_many_bytes_of_arguments_are_refused(void **state)
{
    (void)state;
    size_t len = (size_t)JSON_LEN_MAX + 1;
    _cleanup_(free_p) char *args = malloc(len + 1);
    assert_non_null(args);
    memset(args, ' ', len);
    memcpy(args, "[1,2]", 5);
    args[len] = '\0';
    assert_unrun(plus, args, "INVALID",
                 "foo(): the arguments cannot be read: the JSON has 67108865 bytes; the limit is 67108864");
}

static cadre_result twice(void *self, cadre_call *call)
{
    int64_t n;
    (void)self;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    return r == CADRE_OK ? cadre_return_int64(call, n) : r;
}

static void whole_numbers_keep_all_their_digits(void **state)
{
    (void)state;
    assert_result(twice, "[9223372036854775807]", "9223372036854775807");
    assert_result(twice, "[-9223372036854775808]", "-9223372036854775808");
    assert_error(twice, "[9223372036854775808]", "INVALID",
                 "foo(): argument 'n' must be a whole number of 64 bits, it is number 9223372036854775808");
    assert_error(twice, "[1.5]", "INVALID", "foo(): argument 'n' must be a whole number of 64 bits, it is number 1.5");
}

static cadre_result same_double(void *self, cadre_call *call)
{
    double x;
    (void)self;
    cadre_result r = cadre_arg_double(call, 0, NULL, &x);
    return r == CADRE_OK ? cadre_return_double(call, x) : r;
}

static void numbers_come_back_as_they_went(void **state)
{
    (void)state;
    assert_result(same_double, "[0.1]", "0.1");
    assert_result(same_double, "[10]", "10");
    assert_result(same_double, "[0.30000000000000004]", "0.30000000000000004");
    assert_result(same_double, "[1e300]", "1e+300");
    assert_error(same_double, "{\"x\":1}", "INVALID", "foo() needs an argument '?' (position 0)");
    static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8"}; // if the machine has these locales
    for (size_t i = 0; i < ARRAY_LEN(comma); i++) {
        setlocale(LC_ALL, comma[i]);
        assert_result(same_double, "[0.1]", "0.1");
        setlocale(LC_ALL, "C");
    }
}

static cadre_result not_a_number(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_double(call, NAN);
}

static void what_json_has_no_number_for_is_an_error(void **state)
{
    (void)state;
    assert_false(run(not_a_number, ""));
    assert_non_null(strstr(answer, "nan, which is not a number in JSON"));
}

static cadre_result greet(void *self, cadre_call *call)
{
    const char *name;
    char text[128];
    (void)self;
    cadre_result r = cadre_arg_string(call, 0, "name", &name);
    if (r != CADRE_OK)
        return r;
    snprintf(text, sizeof text, "hello\n%s", name);
    return cadre_return_string(call, text);
}

static void strings_are_unescaped_and_escaped(void **state)
{
    (void)state;
    assert_result(greet, "[\"\\u00e9\\\"\"]", "\"hello\\n\xc3\xa9\\\"\"");
    assert_error(greet, "[7]", "INVALID", "foo(): argument 'name' must be a string, it is number 7");
}

static cadre_result pass_json(void *self, cadre_call *call)
{
    const char *json;
    size_t len;
    (void)self;
    cadre_result r = cadre_arg_json(call, 0, "x", &json, &len);
    return r == CADRE_OK ? cadre_return_json(call, json, len) : r;
}

static cadre_result return_garbage(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_json(call, "{\"a\":", 5);
}

static void json_goes_through_as_it_is(void **state)
{
    (void)state;
    assert_result(pass_json, "{\"x\":{\"a\": [1.50, null]}}", "{\"a\": [1.50, null]}");
    assert_result(pass_json, "[null]", "null");
    assert_false(run(return_garbage, ""));
    assert_non_null(strstr(answer, "foo() returns what is not valid JSON at byte 5"));
}

static cadre_result whole(void *self, cadre_call *call)
{
    size_t len;
    (void)self;
    const char *args = cadre_args(call, &len);
    return cadre_return_json(call, args, len);
}

static void no_arguments_are_an_empty_list(void **state)
{
    (void)state;
    assert_result(whole, "", "[]");
    assert_result(whole, "{\"a\":1}", "{\"a\":1}");
}

static cadre_result return_nothing(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    return CADRE_OK;
}

static cadre_result return_twice(void *self, cadre_call *call)
{
    (void)self;
    cadre_return_string(call, "first");
    return cadre_return_int64(call, 2);
}

static void no_result_is_null_and_the_last_one_wins(void **state)
{
    (void)state;
    assert_result(return_nothing, "", "null");
    assert_result(return_twice, "", "2");
}

static cadre_result fail_loudly(void *self, cadre_call *call)
{
    (void)self;
    cadre_return_int64(call, 2);
    return cadre_fail(call, "loss is \"%s\"", "nan");
}

static cadre_result fail_no_device(void *self, cadre_call *call)
{
    (void)self;
    cadre_fail(call, "no GPU %d", 3);
    return CADRE_NO_DEVICE;
}

static cadre_result fail_silently(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    return CADRE_OUT_OF_MEMORY;
}

static cadre_result fail_strangely(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    return (cadre_result)77;
}

static void a_failure_says_why(void **state)
{
    (void)state;
    assert_error(fail_loudly, "", "FAILED", "loss is \\\"nan\\\"");
    assert_error(fail_no_device, "", "NO_DEVICE", "no GPU 3");
    assert_error(fail_silently, "", "NOMEM", "foo() failed (cadre_result 4) and did not say why");
    assert_error(fail_strangely, "", "FAILED", "foo() failed (cadre_result 77) and did not say why");
}

static cadre_result fail_at_length(void *self, cadre_call *call)
{
    (void)self;
    return cadre_fail(call, "%0*d", 100000, 1);
}

static void a_message_is_cut(void **state)
{
    (void)state;
    assert_false(run(fail_at_length, ""));
    assert_true(strlen(answer) < 4200);
}

static cadre_result tell_canceled(void *self, cadre_call *call)
{
    (void)self;
    return cadre_call_canceled(call) ? CADRE_CANCELED : CADRE_OK;
}

static void a_method_sees_that_it_is_canceled(void **state)
{
    (void)state;
    struct cadre_call c;
    const cadre_method m = {"foo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, tell_canceled, NULL};
    assert_result(tell_canceled, "", "null");
    call_init(&c, NULL, 0);
    call_cancel(&c);
    call_run(&c, &m, NULL);
    assert_true(c.failed);
    assert_string_equal(c.code, "CANCELED");
    call_done(&c);
}

struct example_call {
    const char *method, *args, *want;
};

// Creates one object of an example with that init, as rank 3 of 4, and calls it.
static void assert_example(const char *so, const char *class_name, const char *init, const struct example_call *calls,
                           size_t n)
{
    struct module m;
    struct err err = ERR_INIT;
    struct arena a = ARENA_INIT;
    struct cadre_worker worker = {.rank = 3, .world_size = 4, .arena = &a};
    struct json *parsed;
    assert_int_equal(json_parse(init, strlen(init), NULL, &a, &parsed, &err), 0);
    worker.init = parsed;
    void *self;
    assert_int_equal(module_load(so, &m, &err), 0);
    const cadre_class *class = module_class(&m, class_name, &err);
    assert_non_null(class);
    worker.class = class;
    assert_int_equal(class->create(&worker, init, strlen(init), &self), CADRE_OK);
    for (size_t i = 0; i < n; i++) {
        struct cadre_call c;
        struct buf out = BUF_INIT(1000);
        call_init(&c, calls[i].args, strlen(calls[i].args));
        call_run(&c, module_method(class, calls[i].method, &err), self);
        assert_true(call_encode(&c, &out));
        assert_string_equal(buf_str(&out), calls[i].want);
        buf_done(&out);
        call_done(&c);
    }
    class->destroy(self);
    published_done(&worker.published);
    arena_done(&a);
}

static void an_accumulator_begins_as_its_rank(void **state)
{
    (void)state;
    static const struct example_call calls[] = {{"get_value", "", "5"},
                                                {"add", "[10]", "15"},
                                                {"add", "{\"x\":1}", "16"},
                                                {"foo_rank_zero", "{\"x\":1,\"y\":2}", "19"}};
    assert_example(ACCUMULATOR_SO, "Accumulator", "{\"start\":2}", calls, ARRAY_LEN(calls));
}

static void a_counter_begins_at_zero(void **state)
{
    (void)state;
    static const struct example_call calls[] = {
        {"get_value", "", "0"}, {"increment", "", "1"}, {"increment", "", "2"}, {"get_value", "", "2"}};
    assert_example(COUNTER_SO, "Counter", "{}", calls, ARRAY_LEN(calls));
}

static void the_modes_of_the_dispatch_example_change_nothing_for_the_method(void **state)
{
    (void)state;
    static const struct example_call calls[] = {{"foo_one_to_all", "{\"x\":1,\"y\":2}", "5"},
                                                {"foo_all_to_all", "[1,5]", "8"},
                                                {"foo_rank_zero", "{\"x\":1,\"y\":2}", "5"}};
    assert_example(DISPATCH_SO, "TestActor", "{\"x\":2}", calls, ARRAY_LEN(calls));
}

static void a_constructor_reads_its_argument(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *init;
    const char *text = "{\"f\":1.5,\"i\":7,\"s\":\"v\",\"n\":null}";
    assert_int_equal(json_parse(text, strlen(text), NULL, &a, &init, &err), 0);
    struct cadre_worker w = {.init = init, .arena = &a};
    double f;
    int64_t i;
    const char *s;
    assert_int_equal(cadre_init_double(&w, "f", 0, &f), CADRE_OK);
    assert_true(f == 1.5);
    assert_int_equal(cadre_init_double(&w, "n", 4, &f), CADRE_OK);
    assert_true(f == 4);
    assert_int_equal(cadre_init_int64(&w, "i", 0, &i), CADRE_OK);
    assert_int_equal(i, 7);
    assert_int_equal(cadre_init_string(&w, "s", "", &s), CADRE_OK);
    assert_string_equal(s, "v");
    assert_int_equal(cadre_init_string(&w, "absent", "fallback", &s), CADRE_OK);
    assert_string_equal(s, "fallback");
    assert_int_equal(cadre_init_int64(&w, "f", 0, &i), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "init: \"f\" must be a whole number of 64 bits, it is a number");
    assert_int_equal(cadre_init_double(&w, "s", 0, &f), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_init_string(&w, "i", NULL, &s), CADRE_INVALID_ARGUMENT);
    arena_done(&a);
}

static void the_environment_tells_who_the_process_is(void **state)
{
    (void)state;
    static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "CADRE_DEVICE"};
    struct cadre_worker w;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    assert_int_equal(process_from_env(&w, &err), 0);
    assert_int_equal(cadre_rank(&w), 0);
    assert_int_equal(cadre_world_size(&w), 1);
    assert_int_equal(cadre_device(&w), -1);
    setenv("RANK", "5", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("CADRE_DEVICE", "0", 1);
    assert_int_equal(process_from_env(&w, &err), 0);
    assert_int_equal(cadre_rank(&w), 5);
    assert_int_equal(cadre_local_rank(&w), 1);
    assert_int_equal(cadre_device(&w), 0);
    setenv("WORLD_SIZE", "5", 1);
    assert_int_equal(process_from_env(&w, &err), ERR_INVALID);
    assert_string_equal(err.msg, "environment: RANK=5 is not below WORLD_SIZE=5");
    setenv("WORLD_SIZE", "many", 1);
    assert_int_equal(process_from_env(&w, &err), ERR_INVALID);
    assert_string_equal(err.msg, "environment: WORLD_SIZE=many: must be a number from 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_come_by_position_or_by_name),
        cmocka_unit_test(arguments_that_a_method_does_not_take_are_refused_where_it_says_so),
        cmocka_unit_test(what_a_method_does_not_find_is_not_a_missing_argument),
        cmocka_unit_test(arguments_of_another_type_are_refused_by_name),
        cmocka_unit_test(what_is_no_list_or_object_is_refused_before_the_method_runs),
        cmocka_unit_test(arguments_that_are_nested_too_deep_are_refused_with_the_limit),
        cmocka_unit_test(too_many_bytes_of_arguments_are_refused),
        cmocka_unit_test(whole_numbers_keep_all_their_digits),
        cmocka_unit_test(numbers_come_back_as_they_went),
        cmocka_unit_test(what_json_has_no_number_for_is_an_error),
        cmocka_unit_test(strings_are_unescaped_and_escaped),
        cmocka_unit_test(json_goes_through_as_it_is),
        cmocka_unit_test(no_arguments_are_an_empty_list),
        cmocka_unit_test(no_result_is_null_and_the_last_one_wins),
        cmocka_unit_test(a_failure_says_why),
        cmocka_unit_test(a_message_is_cut),
        cmocka_unit_test(a_method_sees_that_it_is_canceled),
        cmocka_unit_test(an_accumulator_begins_as_its_rank),
        cmocka_unit_test(a_counter_begins_at_zero),
        cmocka_unit_test(the_modes_of_the_dispatch_example_change_nothing_for_the_method),
        cmocka_unit_test(a_constructor_reads_its_argument),
        cmocka_unit_test(the_environment_tells_who_the_process_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
