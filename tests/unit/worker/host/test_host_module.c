// SPDX-License-Identifier: Apache-2.0
#include "worker/host/module.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define assert_says(err, text)                                                      \
    do {                                                                            \
        if (!strstr((err)->msg, (text)))                                            \
            fail_msg("the message \"%s\" does not say \"%s\"", (err)->msg, (text)); \
    } while (0)

static int load(const char *path, struct err *err)
{
    struct module m;
    *err = ERR_INIT;
    return module_load(path, &m, err);
}

static void a_module_tells_its_classes_and_methods(void **state)
{
    (void)state;
    struct module m;
    struct err err = ERR_INIT;
    assert_int_equal(module_load(ACCUMULATOR_SO, &m, &err), 0);
    const cadre_class *c = module_class(&m, "Accumulator", &err);
    assert_non_null(c);
    assert_ptr_equal(module_class(&m, NULL, &err), c); // the only one
    assert_ptr_equal(module_class(&m, "", &err), c);
    const cadre_method *foo = module_method(c, "foo_rank_zero", &err);
    assert_non_null(foo);
    assert_int_equal(foo->dispatch, CADRE_ALL_TO_ALL);
    assert_int_equal(foo->execute, CADRE_EXECUTE_RANK_ZERO);
    assert_int_equal(module_method(c, "add", &err)->dispatch, CADRE_ONE_TO_ALL);
    assert_int_equal(err.code, 0);
}

static void a_module_declares_how_its_methods_are_called(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int dispatch, execute;
    } want[] = {{"foo_one_to_all", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL},
                {"foo_all_to_all", CADRE_ALL_TO_ALL, CADRE_EXECUTE_ALL},
                {"foo_custom", CADRE_SPLIT, CADRE_EXECUTE_ALL},
                {"foo_rank_zero", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO}};
    struct module m;
    struct err err = ERR_INIT;
    assert_int_equal(module_load(DISPATCH_SO, &m, &err), 0);
    const cadre_class *c = module_class(&m, NULL, &err);
    assert_non_null(c);
    assert_int_equal(c->n_methods, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const cadre_method *method = module_method(c, want[i].name, &err);
        assert_non_null(method);
        assert_int_equal(method->dispatch, want[i].dispatch);
        assert_int_equal(method->execute, want[i].execute);
    }
}

static void what_is_not_there_is_answered_with_what_is(void **state)
{
    (void)state;
    struct module m;
    struct err err = ERR_INIT;
    assert_int_equal(module_load(MISBEHAVING_SO, &m, &err), 0);
    assert_null(module_class(&m, "Trainer", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_says(&err, "no class Trainer; it has Misbehaving, Failing, Silent, Hanging");
    assert_null(module_class(&m, NULL, &err));
    assert_says(&err, "several classes (Misbehaving, Failing, Silent, Hanging): set one of them as the class");
    assert_null(module_method(module_class(&m, "Misbehaving", &err), "sub", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_says(&err, "class Misbehaving has no method sub; it has crash, crash_once, crash_first, give_up, "
                      "fail_silently, hold");
    assert_null(module_method(module_class(&m, "Failing", &err), "sub", &err));
    assert_says(&err, "it has none");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(load("/nowhere/accumulator.so", &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, "module /nowhere/accumulator.so: No such file or directory (the path is one inside "
                                 "the worker's container)");
}

static void a_file_that_is_no_shared_object_is_refused(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(load("VERSION", &err), ERR_INVALID);
    assert_says(&err, "module VERSION is not a shared object for this machine");
    assert_int_equal(load("README.md", &err), ERR_INVALID);
    assert_says(&err, "module README.md is not a shared object for this machine");
    assert_true(load("docs", &err) < 0);
    assert_says(&err, "module docs does not load");
}

static void a_shared_object_without_the_symbol_is_refused(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(load(NO_SYMBOL_SO, &err), ERR_INVALID);
    assert_says(&err, "does not export cadre_module()");
}

static void another_abi_is_refused_before_anything_is_looked_at(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(load(OTHER_ABI_SO, &err), ERR_INVALID);
    assert_says(&err,
                "was built for ABI 4, this cadre-worker speaks 3: rebuild it with the SDK of version " CADRE_VERSION);
}

static void a_function_of_a_newer_sdk_is_named(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(load(FUTURE_SO, &err), ERR_INVALID);
    assert_says(&err, "cadre_from_the_future");
    assert_says(&err, "was the module built with a newer SDK?");
}

static void a_missing_gpu_driver_is_named(void **state)
{
    (void)state;
    struct err err;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver) { // this machine has the driver
        dlclose(driver);
        skip();
    }
    assert_int_equal(load(NEEDS_DRIVER_SO, &err), ERR_NOT_FOUND);
    assert_says(&err, "libcuda.so.1: cannot open shared object file");
    assert_says(&err, "is there a GPU driver on this machine? In a cluster, the pod must also request nvidia.com/gpu");
}

// A correct description. Each test makes one part of it wrong.
static cadre_result run(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    return CADRE_OK;
}

static cadre_result create(cadre_worker *w, const char *init, size_t len, void **ret)
{
    (void)w, (void)init, (void)len, (void)ret;
    return CADRE_OK;
}

struct description {
    cadre_method methods[2];
    cadre_class classes[2];
    cadre_module_info info;
};

static struct description *describe(void)
{
    static struct description d;
    d = (struct description){
        .methods = {{"a", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, run, NULL},
                    {"b", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO, run, "doc"}},
        .classes = {{"A", create, NULL, d.methods, 2}, {"B", create, NULL, NULL, 0}},
        .info = {CADRE_ABI, NULL, d.classes, 2},
    };
    return &d;
}

static void assert_refused(const struct description *d, const char *why)
{
    struct err err = ERR_INIT;
    assert_int_equal(module_check("m.so", &d->info, false, &err), ERR_INVALID);
    assert_says(&err, "module m.so");
    assert_says(&err, why);
}

static void tables_that_would_crash_the_host_are_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(module_check("m.so", &describe()->info, false, &err), 0);
    assert_int_equal(module_check("m.so", NULL, false, &err), ERR_INVALID);
    assert_says(&err, "cadre_module() returned NULL");

    struct description *d = describe();
    d->info.n_classes = 0;
    assert_refused(d, "0 classes");
    d->info.n_classes = SIZE_MAX;
    assert_refused(d, "1 to 256 are possible");
    (d = describe())->info.classes = NULL;
    assert_refused(d, "in no table");
    (d = describe())->classes[1].name = NULL;
    assert_refused(d, "class 1 has no name");
    (d = describe())->classes[1].name = "A";
    assert_refused(d, "class 1 is named 'A' like another before it");
    (d = describe())->classes[0].create = NULL;
    assert_refused(d, "class A has no constructor");
    (d = describe())->classes[1].n_methods = 1;
    assert_refused(d, "class B has 1 methods in no table");
    (d = describe())->classes[0].n_methods = 1025;
    assert_refused(d, "at most 1024");
    (d = describe())->methods[1].name = "a";
    assert_refused(d, "class A: method 1 is named 'a' like another before it");
    (d = describe())->methods[1].run = NULL;
    assert_refused(d, "class A: method b has no function");
    (d = describe())->methods[0].dispatch = 0;
    assert_refused(d, "method a declares dispatch mode 0");
    (d = describe())->methods[0].execute = 9;
    assert_refused(d, "method a declares execute mode 9");
}

static void names_can_be_called_from_anywhere(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "9a",
                                      "a-b",
                                      "a b",
                                      "__info__",
                                      "caf\xc3\xa9",
                                      "a23456789012345678901234567890123456789012345678901234567890abcd"};
    struct err err = ERR_INIT;
    struct description *d = describe();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        d->methods[0].name = bad[i];
        assert_refused(d, "a name is up to 63 letters, digits and '_'");
    }
    d->methods[0].name = "_a9";
    assert_int_equal(module_check("m.so", &d->info, false, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_tells_its_classes_and_methods),
        cmocka_unit_test(a_module_declares_how_its_methods_are_called),
        cmocka_unit_test(what_is_not_there_is_answered_with_what_is),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(a_file_that_is_no_shared_object_is_refused),
        cmocka_unit_test(a_shared_object_without_the_symbol_is_refused),
        cmocka_unit_test(another_abi_is_refused_before_anything_is_looked_at),
        cmocka_unit_test(a_function_of_a_newer_sdk_is_named),
        cmocka_unit_test(a_missing_gpu_driver_is_named),
        cmocka_unit_test(tables_that_would_crash_the_host_are_refused),
        cmocka_unit_test(names_can_be_called_from_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
