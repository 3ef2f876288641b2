// SPDX-License-Identifier: Apache-2.0
#include "operator/api/launch.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char *words[] = {"serve", "--port", "1"};

// "command | NAME=VALUE ...", as text.
static void expect(const struct worker_spec *s, const char *want)
{
    struct arena a = ARENA_INIT;
    struct launch l;
    launch_of(s, &a, &l);
    const char *text = "";
    for (size_t i = 0; i < l.n_command; i++)
        text = arena_printf(&a, "%s%s ", text, l.command[i]);
    assert_null(l.command[l.n_command]);
    text = arena_printf(&a, "%s|", text);
    for (size_t i = 0; i < l.n_env; i++)
        text = arena_printf(&a, "%s %s=%s", text, l.env[i].name, l.env[i].value);
    assert_string_equal(text, want);
    arena_done(&a);
}

static void a_module_runs_in_the_worker_program(void **state)
{
    (void)state;
    expect(&(struct worker_spec){.module = "/m.so"}, "cadre-worker | CADRE_MODULE=/m.so");
    expect(&(struct worker_spec){.module = "/m.so", .class_name = "A", .init_json = "{\"x\":1}"},
           "cadre-worker | CADRE_MODULE=/m.so CADRE_CLASS=A CADRE_INIT={\"x\":1}");
    expect(&(struct worker_spec){.module = "/m.so", .roles_json = "[{\"name\":\"a\",\"class\":\"A\"}]"},
           "cadre-worker | CADRE_MODULE=/m.so CADRE_ROLES=[{\"name\":\"a\",\"class\":\"A\"}]");
    expect(&(struct worker_spec){.module = "/m.so", .args = words + 1, .n_args = 2},
           "cadre-worker --port 1 | CADRE_MODULE=/m.so");
}

static void a_python_module_runs_in_the_image_s_python(void **state)
{
    (void)state;
    expect(&(struct worker_spec){.python = "pkg.actors", .class_name = "A", .init_json = "{\"x\":1}"},
           "python3 -m cadre.worker | CADRE_PYTHON=pkg.actors CADRE_CLASS=A CADRE_INIT={\"x\":1}");
    expect(&(struct worker_spec){.python = "a", .preload = (const char *[]){"torch", "numpy.linalg"}, .n_preload = 2},
           "python3 -m cadre.worker | CADRE_PYTHON=a CADRE_PRELOAD=torch numpy.linalg");
}

static void code_travels_in_variables_that_the_kernel_takes(void **state)
{
    (void)state;
    expect(&(struct worker_spec){.python = "nb", .has_archive = true, .archive_sha256 = "cd", .archive_size = 10240},
           "python3 -m cadre.worker | CADRE_PYTHON=nb CADRE_ARCHIVE=cd:10240");
    expect(&(struct worker_spec){.python = "nb", .code_sha256 = "ab", .code_inline = "Y29kZQ=="},
           "python3 -m cadre.worker | CADRE_PYTHON=nb CADRE_CODE=ab CADRE_CODE_0=Y29kZQ==");
    struct arena a = ARENA_INIT;
    struct launch l;
    enum { LEN = 349528, VARIABLE_MAX = 128 * 1024 };
    char *text = arena_alloc(&a, LEN + 1);
    memset(text, 'x', LEN);
    text[LEN] = '\0';
    launch_of(&(struct worker_spec){.python = "nb", .code_sha256 = "ab", .code_inline = text}, &a, &l);
    size_t total = 0;
    for (size_t i = 2; i < l.n_env; i++) {
        assert_true(strlen(l.env[i].name) + strlen(l.env[i].value) + 2 < VARIABLE_MAX);
        total += strlen(l.env[i].value);
    }
    assert_int_equal(total, LEN);
    arena_done(&a);
}

static void a_command_is_run_as_it_is(void **state)
{
    (void)state;
    expect(&(struct worker_spec){.command = words, .n_command = 1, .args = words + 1, .n_args = 2}, "serve --port 1 |");
}

static void without_any_the_container_has_the_command_and_its_arguments(void **state)
{
    (void)state;
    expect(&(struct worker_spec){.args = words, .n_args = 3}, "|");
}

static void variables_come_behind_and_those_from_elsewhere_do_not(void **state)
{
    (void)state;
    struct worker_env env[] = {
        {.name = "A", .value = "1"}, {.name = "SECRET", .value_from = "{\"secretKeyRef\":{}}"}, {.name = "EMPTY"}};
    expect(&(struct worker_spec){.module = "/m.so", .env = env, .n_env = 3},
           "cadre-worker | CADRE_MODULE=/m.so A=1 EMPTY=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_runs_in_the_worker_program),
        cmocka_unit_test(a_python_module_runs_in_the_image_s_python),
        cmocka_unit_test(code_travels_in_variables_that_the_kernel_takes),
        cmocka_unit_test(a_command_is_run_as_it_is),
        cmocka_unit_test(without_any_the_container_has_the_command_and_its_arguments),
        cmocka_unit_test(variables_come_behind_and_those_from_elsewhere_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
