// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/ref.h"

#include <stdio.h>
#include <string.h>

static struct ref two_parts(struct ref_part parts[2])
{
    parts[0] = (struct ref_part){.rank = 0, .attempt = 3, .id = 0xabc, .bytes = 12, .kind = REF_BATCH};
    parts[1] = (struct ref_part){.rank = 7, .attempt = 4, .id = UINT64_MAX, .bytes = 0, .kind = REF_JSON};
    struct ref r = {.form = REF_JOINED, .n = 2, .parts = parts};
    snprintf(r.uid, sizeof r.uid, "6e8a-llama");
    return r;
}

static void assert_same(const struct ref *a, const struct ref *b)
{
    assert_string_equal(a->uid, b->uid);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_int_equal(a->parts[i].rank, b->parts[i].rank);
        assert_int_equal(a->parts[i].attempt, b->parts[i].attempt);
        assert_true(a->parts[i].id == b->parts[i].id);
        assert_true(a->parts[i].bytes == b->parts[i].bytes);
        assert_int_equal(a->parts[i].kind, b->parts[i].kind);
    }
}

static void it_tells_where_the_object_is(void **state)
{
    (void)state;
    struct ref_part parts[2];
    struct ref r = two_parts(parts), got;
    struct buf text = BUF_INIT(4096);
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    ref_write(&r, &text);
    const char *want = "cadre:1:6e8a-llama:j:0.3.0000000000000abc.12.b,7.4.ffffffffffffffff.0.j:";
    assert_memory_equal(buf_str(&text), want, strlen(want));
    assert_int_equal(text.len, strlen(want) + 8);
    assert_int_equal(ref_parse(buf_str(&text), text.len, &a, &got, &err), 0);
    assert_same(&r, &got);
    arena_done(&a);
    buf_done(&text);
}

static void whatever_is_written_is_read_back(void **state)
{
    (void)state;
    static const char kinds[] = {REF_JSON, REF_BATCH, REF_BODIES};
    struct rand rand;
    rand_seed(&rand, 1);
    for (int round = 0; round < 500; round++) {
        struct arena a = ARENA_INIT;
        struct buf text = BUF_INIT(REF_TEXT_MAX);
        struct err err = ERR_INIT;
        struct ref r = {.uid = "uid", .n = 1 + (uint32_t)rand_below(&rand, 20)}, got;
        r.form = r.n == 1 ? REF_ONE : rand_below(&rand, 2) ? REF_LIST : REF_JOINED;
        r.parts = arena_array(&a, r.n, sizeof *r.parts);
        for (uint32_t i = 0; i < r.n; i++)
            r.parts[i] = (struct ref_part){.rank = (uint32_t)rand_below(&rand, UINT32_MAX),
                                           .attempt = (uint32_t)rand_u64(&rand),
                                           .id = rand_u64(&rand),
                                           .bytes = rand_u64(&rand) >> 1,
                                           .kind = (enum ref_kind)kinds[rand_below(&rand, 3)]};
        ref_write(&r, &text);
        assert_int_equal(ref_parse(buf_str(&text), text.len, &a, &got, &err), 0);
        assert_same(&r, &got);
        buf_done(&text);
        arena_done(&a);
    }
}

static void one_byte_that_was_changed_is_noticed(void **state)
{
    (void)state;
    struct ref_part parts[2];
    struct ref r = two_parts(parts), got;
    struct buf text = BUF_INIT(4096);
    struct arena a = ARENA_INIT;
    ref_write(&r, &text);
    for (size_t i = 0; i < text.len; i++) {
        struct err err = ERR_INIT;
        text.data[i] ^= 1;
        assert_int_equal(ref_parse(text.data, text.len, &a, &got, &err), ERR_INVALID);
        text.data[i] ^= 1;
        assert_int_equal(ref_parse(text.data, i, &a, &got, &err), ERR_INVALID);
    }
    arena_done(&a);
    buf_done(&text);
}

static const char *with_check(const char *text, struct arena *a)
{
    uint64_t hash = 14695981039346656037u; // FNV-1a, as str_hash()
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    return arena_printf(a, "%s:%08x", text, (unsigned)(uint32_t)hash);
}

static void nonsense_with_a_right_check_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "cadre:1:",
        "cadre:1:u",
        "cadre:1:u:",
        "cadre:1:u:o",
        "cadre:1:u:o:",
        "cadre:1::o:0.1.0000000000000001.1.j",
        "cadre:1:u:x:0.1.0000000000000001.1.j",                          // no such form
        "cadre:1:u:o:0.1.0000000000000001.1.j,1.1.0000000000000001.1.j", // one rank's, with two parts
        "cadre:1:u:l:0.1.0000000000000001.1.j,",                         // a part that is not there
        "cadre:1:u:o:0.1.000000000000001.1.j",
        "cadre:1:u:o:0.1.000000000000000G.1.j",
        "cadre:1:u:o:4294967295.1.0000000000000001.1.j", // the number that means the group
        "cadre:1:u:o:0.1.0000000000000001.99999999999999999999.j",
        "cadre:1:u:o:0.1.0000000000000001.1.q",
        "cadre:1:u:o:0.1.0000000000000001.1.j:",
        "cadre:2:u:o:0.1.0000000000000001.1.j",
        "cadre:1:a \"b:o:0.1.0000000000000001.1.j",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct ref got;
        const char *text = with_check(cases[i], &a);
        if (ref_parse(text, strlen(text), &a, &got, &err) != ERR_INVALID)
            fail_msg("%s is taken", text);
        arena_done(&a);
    }
}

// As many references as there are, each by its text.
static const char *found_in(const char *json, char out[256])
{
    struct ref_found f;
    size_t at = 0, n = 0;
    out[0] = '\0';
    while (ref_next(json, strlen(json), &at, &f))
        n += (size_t)snprintf(out + n, 256 - n, "%.*s;", (int)f.text_len, f.text);
    return out;
}

static void references_are_found_wherever_they_stand(void **state)
{
    (void)state;
    char out[256];
    assert_string_equal(found_in("{\"$ref\":\"cadre:a\"}", out), "cadre:a;");
    assert_string_equal(found_in("[1, {\"$ref\": \"cadre:a\"}, { \"$ref\" :\"cadre:b\" , \"at\":\"x\"}]", out),
                        "cadre:a;cadre:b;");
    assert_string_equal(found_in("{\"x\":{\"y\":{\"$ref\":\"cadre:a\"}}}", out), "cadre:a;");
}

static void what_only_looks_like_one_is_left_alone(void **state)
{
    (void)state;
    char out[256];
    assert_string_equal(found_in("{\"$ref\":\"#/definitions/x\"}", out), ""); // of a JSON schema
    assert_string_equal(found_in("[\"$ref\",\"cadre:a\"]", out), "");
    assert_string_equal(found_in("{\"x\":1,\"$ref\":\"cadre:a\"}", out), "");
    assert_string_equal(found_in("[\"{\\\"$ref\\\":\\\"cadre:a\\\"}\"]", out), ""); // inside of a string
    assert_string_equal(found_in("{\"$ref\":\"cadre:a\"", out), "");
    assert_string_equal(found_in("{\"$ref\":{\"a\":\"cadre:a\"}}", out), "");
    assert_string_equal(found_in("{\"$ref\":7}", out), "");
}

static void one_that_lies_in_two_segments_is_seen(void **state)
{
    static const char json[] = "[1,{\"$ref\":\"cadre:1:x\"}]", none[] = "[1,{\"$reg\":\"$ref\\\"\"}]";
    (void)state;
    for (size_t cut = 0; cut < sizeof json; cut++)
        assert_true(ref_mentioned_in(json, cut, json + cut, sizeof json - 1 - MIN(cut, sizeof json - 1)));
    for (size_t cut = 0; cut < sizeof none - 1; cut++)
        assert_false(ref_mentioned_in(none, cut, none + cut, sizeof none - 1 - cut));
    assert_false(ref_mentioned_in("", 0, "", 0));
}

static void it_may_be_the_whole_document(void **state)
{
    (void)state;
    struct ref_found f;
    const char *json = " {\"$ref\":\"cadre:a\",\"at\":\"h:1\",\"key\":\"k\",\"until\":17,\"owner\":\"rank 2\"}\n";
    assert_true(ref_is(json, strlen(json), &f));
    assert_memory_equal(f.at, "h:1", f.at_len);
    assert_memory_equal(f.key, "k", f.key_len);
    assert_memory_equal(f.owner, "rank 2", f.owner_len);
    assert_int_equal(f.until, 17);
    assert_false(ref_is("[{\"$ref\":\"cadre:a\"}]", 20, &f));
}

static void a_key_opens_one_object_until_a_time(void **state)
{
    (void)state;
    char key[REF_KEY_SIZE];
    ref_key("secret", 7, 1000, key);
    assert_true(ref_key_good("secret", 7, 1000, key, 64));
    assert_false(ref_key_good("secret", 8, 1000, key, 64));
    assert_false(ref_key_good("secret", 7, 1001, key, 64));
    assert_false(ref_key_good("Secret", 7, 1000, key, 64));
    assert_false(ref_key_good("secret", 7, 1000, key, 63));
    assert_int_equal(strlen(key), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_where_the_object_is),
        cmocka_unit_test(whatever_is_written_is_read_back),
        cmocka_unit_test(one_byte_that_was_changed_is_noticed),
        cmocka_unit_test(nonsense_with_a_right_check_is_refused),
        cmocka_unit_test(references_are_found_wherever_they_stand),
        cmocka_unit_test(what_only_looks_like_one_is_left_alone),
        cmocka_unit_test(one_that_lies_in_two_segments_is_seen),
        cmocka_unit_test(it_may_be_the_whole_document),
        cmocka_unit_test(a_key_opens_one_object_until_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
