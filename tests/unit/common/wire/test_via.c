// SPDX-License-Identifier: Apache-2.0
// Which methods wait for a call.
#include "common/wire/via.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct json *parse(const char *text, struct arena *a)
{
    struct json *list;
    struct err err = ERR_INIT;
    assert_int_equal(json_parse(text, strlen(text), NULL, a, &list, &err), 0);
    return list;
}

static void adds(const char *via, struct via_entry entry, const char *want)
{
    struct buf out = BUF_INIT(4096);
    struct err err = ERR_INIT;
    assert_int_equal(via_add(via, via ? strlen(via) : 0, &entry, &out, &err), 0);
    assert_string_equal(buf_str(&out), want);
    buf_done(&out);
}

static void each_call_adds_its_method(void **state)
{
    (void)state;
    adds(NULL, (struct via_entry){"ml", "a", 0, NULL, "step"}, "[\"ml/a/0/step\"]");
    adds("[\"ml/a/0/step\"]", (struct via_entry){"ml", "b", 12, "critic", "score"},
         "[\"ml/a/0/step\",\"ml/b/12/critic/score\"]");
    adds("[]", (struct via_entry){"ml", "a", 0, NULL, "step"}, "[\"ml/a/0/step\"]");
}

static void but_no_more_than_sixteen(void **state)
{
    (void)state;
    struct buf via = BUF_INIT(4096), out = BUF_INIT(4096);
    struct err err = ERR_INIT;
    for (int i = 0; i < VIA_MAX; i++)
        buf_printf(&via, "%s\"ml/a/%d/step\"", i ? "," : "[", i);
    buf_putc(&via, ']');
    assert_int_equal(via_add(via.data, via.len, &(struct via_entry){"ml", "a", 0, NULL, "f"}, &out, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "calls are nested 16 deep already; no further");
    buf_done(&via);
    buf_done(&out);
}

static void each_must_be_a_method_of_a_rank(void **state)
{
    (void)state;
    static const char *const good[] = {"[]", "[\"ml/a/0/f\",\"ml/b/12/critic/score\"]"};
    static const char *const bad[] = {
        "{}",           "\"ml/a/0/f\"", "null",          "[7]",           "[\"ml/a/0/f\",null]",
        "[\"\"]",       "[\"ml/a/0\"]", "[\"ml/a/0/\"]", "[\"ml/a//f\"]", "[\"ml/a/x/f\"]",
        "[\"/a/0/f\"]", "[\"ml//0/f\"]"};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(via_check(parse(good[i], &a), &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (via_check(parse(bad[i], &a), &err) != ERR_INVALID)
            fail_msg("accepted: %s", bad[i]);
    arena_done(&a);
}

static bool is(void *ctx, const char *role, const char *method)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%s", role ? role : "", method);
    return strcmp(text, ctx) == 0;
}

static void a_rank_finds_its_own(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct buf text = BUF_INIT(256);
    const struct json *via =
        parse("[\"ml/a/1/f\",\"ml/a/10/g\",\"ml/b/1/g\",\"ml/a/1/actor/g\",\"ml/a/1/g\",7,\"\"]", &a);
    const struct via_entry here = {"ml", "a", 1, NULL, NULL};
    assert_int_equal(via_find(via, &here, &a, is, (char[]){".f"}), 0);
    assert_int_equal(via_find(via, &here, &a, is, (char[]){"actor.g"}), 3);
    assert_int_equal(via_find(via, &here, &a, is, (char[]){".g"}), 4);
    assert_int_equal(via_find(via, &here, &a, is, (char[]){".h"}), -1);
    assert_int_equal(via_find(via, &(struct via_entry){"ml", "a", -1, NULL, NULL}, &a, is, (char[]){".g"}), 1);
    via_print(via, 2, &a, &text);
    assert_string_equal(buf_str(&text), "ml/b/1/g, ml/a/1/actor/g, ml/a/1/g, ");
    buf_done(&text);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_adds_its_method),
        cmocka_unit_test(but_no_more_than_sixteen),
        cmocka_unit_test(each_must_be_a_method_of_a_rank),
        cmocka_unit_test(a_rank_finds_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
