// SPDX-License-Identifier: Apache-2.0
// Groups with roles: several classes in each process. A client calls each like a group of its own.
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define ROLES                                                                                                       \
    "{\"roles\":[{\"name\":\"actor\",\"class\":\"Actor\",\"methods\":[{\"name\":\"add\",\"dispatch\":"              \
    "\"ONE_TO_ALL\",\"execute\":\"ALL\"}]},{\"name\":\"critic\",\"methods\":[{\"name\":\"add\",\"dispatch\":"       \
    "\"ALL_TO_ALL\",\"execute\":\"ALL\"},{\"name\":\"score\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"RANK_ZERO\"" \
    "}]}]}"

static int setup(void **state)
{
    struct err err = ERR_INIT;
    world_setup_empty(state);
    struct world *w = *state;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(worker_dial_as(&w->f, &w->workers[i], i, 1, ROLES, &err), 0);
    return 0;
}

static void all_take(struct world *w, const char *args)
{
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], args), "0");
}

static void each_role_has_methods_of_its_own(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"add\",\"role\":\"actor\"}", "[1]");
    all_take(w, "[1]");
    hears(w, "1 RESULT [0,0,0,0]");
    sends_group(w, 2, "{\"method\":\"add\",\"role\":\"critic\"}", "[5,5,5,5]"); // the same name with another mode
    all_take(w, "[5]");
    hears(w, "2 RESULT [0,0,0,0]");
    sends_group(w, 3, "{\"method\":\"score\",\"role\":\"critic\"}", "[]");
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[]"), "7");
    hears(w, "3 RESULT 7");
}

static void a_call_says_which_one(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "[1]");
    hears_about(w, "1 ERROR INVALID",
                "ml/llama has several roles: set the role of the call of add() to one of them: actor, critic");
    sends_group(w, 2, "{\"method\":\"add\",\"role\":\"judge\"}", "[1]");
    hears_about(w, "2 ERROR NOT_FOUND", "ml/llama has no role 'judge'; it has: actor, critic");
    sends_group(w, 3, "{\"method\":\"score\",\"role\":\"actor\"}", "[1]");
    hears_about(w, "3 ERROR NOT_FOUND", "actor of ml/llama has no method 'score'; it has: add");
    sends_group(w, 4, "{\"method\":\"add\",\"role\":7}", "[1]");
    hears_about(w, "4 ERROR INVALID", "role");
}

static void a_group_without_roles_has_none(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"add\",\"role\":\"actor\"}", "[1]");
    hears_about(w, "1 ERROR NOT_FOUND", "ml/llama has no role 'actor': the group has no roles; leave the role out");
}

static void info_lists_them(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"group.info\"}", "");
    hears_about(w, "1 RESULT {\"namespace\":\"ml\"",
                "\"roles\":[{\"name\":\"actor\",\"class\":\"Actor\",\"methods\":[{\"name\":\"add\",\"dispatch\":"
                "\"ONE_TO_ALL\",\"execute\":\"ALL\"}]},{\"name\":\"critic\",\"methods\":[");
}

static void what_is_wrong_with_roles_is_said(void **state)
{
    static const struct {
        const char *hello, *says;
    } cases[] = {
        {"{\"roles\":[]}", "\"roles\" must be a list of 1 to 16"},
        {"{\"roles\":{}}", "\"roles\" must be a list of 1 to 16"},
        {"{\"roles\":[{\"methods\":[]}]}", "a role needs a \"name\" of its own"},
        {"{\"roles\":[{\"name\":\"a\",\"methods\":[]},{\"name\":\"a\",\"methods\":[]}]}", "\"name\" of its own"},
        {"{\"roles\":[{\"name\":\"a\"}]}", "role a: HELLO: \"methods\" must be a list"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_INIT;
        assert_true(worker_dial_as(&w->f, &w->workers[0], 0, 1, cases[i].hello, &err) < 0);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("%s, not %s", err.msg, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_role_has_methods_of_its_own, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_call_says_which_one, setup, world_teardown),
        PROXY_TEST(a_group_without_roles_has_none),
        cmocka_unit_test_setup_teardown(info_lists_them, setup, world_teardown),
        PROXY_TEST_EMPTY(what_is_wrong_with_roles_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
