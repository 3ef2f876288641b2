// SPDX-License-Identifier: Apache-2.0
#include "common/wire/safetensors.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

// A document of this head and that many bytes of values, in an allocation of just that size.
static char *document(const char *head, size_t values, size_t *ret_len)
{
    size_t len = strlen(head);
    char *doc = xcalloc(1, SAFETENSORS_PREFIX + len + values);
    for (int i = 0; i < SAFETENSORS_PREFIX; i++)
        doc[i] = (char)((uint64_t)len >> (8 * i));
    memcpy(doc + SAFETENSORS_PREFIX, head, len);
    *ret_len = SAFETENSORS_PREFIX + len + values;
    return doc;
}

static int reads(const char *head, size_t values, struct safetensors *ret, struct err *err)
{
    size_t len;
    char *doc = document(head, values, &len);
    *err = ERR_INIT;
    int r = safetensors_read(doc, len, &arena, ret, err);
    free(doc); // nothing points into it
    assert_int_equal(r, err->code);
    return r;
}

static void accepted(const char *head, size_t values)
{
    struct safetensors s;
    struct err err;
    if (reads(head, values, &s, &err) < 0)
        fail_msg("%s: %s", head, err.msg);
}

static void refused(const char *head, size_t values, const char *why)
{
    struct safetensors s;
    struct err err;
    if (reads(head, values, &s, &err) == 0)
        fail_msg("accepted: %s", head);
    if (!strstr(err.msg, why))
        fail_msg("%s: \"%s\" does not say \"%s\"", head, err.msg, why);
}

static void tensors_and_metadata_are_found_by_name(void **state)
{
    (void)state;
    static const char head[] = "{\"b\":{\"dtype\":\"I64\",\"shape\":[2,1],\"data_offsets\":[3,19]},"
                               "\"__metadata__\":{\"z\":\"\\u00e4\\n\",\"format\":\"pt\"},"
                               "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}  ";
    const size_t values = SAFETENSORS_PREFIX + sizeof head - 1;
    struct safetensors s;
    struct err err;
    assert_int_equal(reads(head, 19, &s, &err), 0);
    assert_int_equal(s.n_tensors, 2);
    assert_int_equal(s.len, values + 19);
    assert_string_equal(s.tensors[0].name, "a"); // in the order of their bytes
    assert_string_equal(s.tensors[1].name, "b");
    const struct safetensors_tensor *b = safetensors_find(&s, "b");
    assert_ptr_equal(b, &s.tensors[1]);
    assert_int_equal(b->dtype, SAFETENSORS_I64);
    assert_int_equal(b->n_dims, 2);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 1);
    assert_int_equal(b->offset, values + 3); // unaligned, which is allowed
    assert_int_equal(b->len, 16);
    assert_null(safetensors_find(&s, "c"));
    assert_string_equal(safetensors_meta_get(&s, "format"), "pt");
    assert_string_equal(safetensors_meta_get(&s, "z"), "\xc3\xa4\n");
    assert_null(safetensors_meta_get(&s, "b"));
}

static void the_head_alone_says_how_long_the_document_is(void **state)
{
    (void)state;
    static const char head[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1000],\"data_offsets\":[0,4000]}}";
    struct safetensors s;
    struct err err = ERR_INIT;
    size_t len, head_len;
    char *doc = document(head, 0, &len);
    assert_int_equal(safetensors_head_len(doc, &head_len, &err), 0);
    assert_int_equal(head_len, len);
    assert_int_equal(safetensors_read_head(doc, len, &arena, &s, &err), 0);
    assert_int_equal(s.len, len + 4000);
    assert_int_equal(safetensors_read(doc, len, &arena, &s, &err), ERR_INVALID);
    assert_int_equal(safetensors_read_head(doc, len - 1, &arena, &s, &err), ERR_INVALID);
    free(doc);
}

static void every_dtype_of_the_format_is_known(void **state)
{
    (void)state;
    assert_int_equal(SAFETENSORS_DTYPE_COUNT, 22);
    for (int i = 0; i < SAFETENSORS_DTYPE_COUNT; i++) {
        const char *name = safetensors_dtype_name((enum safetensors_dtype)i);
        enum safetensors_dtype found;
        assert_true(safetensors_dtype_find(name, &found) && (int)found == i);
        size_t bytes = safetensors_dtype_bits((enum safetensors_dtype)i); // of 8 elements
        char head[128];
        snprintf(head, sizeof head, "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%zu]}}", name, bytes);
        accepted(head, bytes);
    }
    refused("{\"t\":{\"dtype\":\"F128\",\"shape\":[],\"data_offsets\":[0,16]}}", 16, "'t' has dtype \"F128\"");
    refused("{\"t\":{\"dtype\":\"f32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "dtype \"f32\"");
    enum safetensors_dtype none;
    assert_false(safetensors_dtype_find("F12", &none) || safetensors_dtype_find(NULL, &none));
}

static void odd_shapes_are_fine(void **state)
{
    (void)state;
    accepted("{}", 0);
    accepted("{\"t\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8);
    accepted("{\"t\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", 0);
    accepted("{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    accepted("{\"t\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3);
    // Empty tensors between others, in any order of the head.
    accepted("{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
             "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
             "\"f\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]},"
             "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
             3);
}

#define U8(name, n, offsets) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" n "],\"data_offsets\":[" offsets "]}"

static void bytes_belong_to_one_tensor_each(void **state)
{
    (void)state;
    refused("{" U8("a", "2", "0,2") "," U8("b", "2", "1,3") "}", 3, "'b' begins at byte 1 of the values, but others");
    refused("{" U8("a", "2", "0,2") "," U8("b", "2", "0,2") "}", 2, "'b' begins at byte 0 of the values, but others");
    refused("{" U8("a", "1", "0,1") "," U8("b", "1", "2,3") "}", 3, "'b' begins at byte 2 of the values, with a hole");
    refused("{" U8("a", "1", "1,2") "}", 2, "a hole from byte 0");
    refused("{" U8("a", "1", "0,1") "}", 2, "end at byte");
    refused("{" U8("a", "3", "0,3") "}", 2, "end at byte");
    refused("{}", 1, "end at byte");
}

static void lengths_are_what_dtype_and_shape_say(void **state)
{
    (void)state;
    refused("{" U8("a", "3", "0,2") "}", 2, "'a' has 2 bytes, but its shape and dtype U8 need 3");
    refused("{" U8("a", "1", "1,0") "}", 0, "no data_offsets");
    refused("{" U8("a", "1", "-1,0") "}", 0, "no data_offsets");
    refused("{" U8("a", "1", "0") "}", 1, "no data_offsets");
    refused("{" U8("a", "1", "0,1,2") "}", 1, "no data_offsets");
    refused("{" U8("a", "1", "0,1.0") "}", 1, "no data_offsets");
    refused("{" U8("a", "1", "0,1e0") "}", 1, "no data_offsets");
    refused("{" U8("a", "1", "0,18446744073709551617") "}", 1, "no data_offsets");
    refused("{" U8("a", "-1", "0,1") "}", 1, "dimension 0 of its shape is not a size: -1");
    refused("{" U8("a", "1,\"2\"", "0,1") "}", 1, "dimension 1 of its shape");
    refused("{" U8("a", "4294967296,4294967296", "0,0") "}", 0, "larger than any memory");
    refused("{" U8("a", "9223372036854775807", "0,9223372036854775807") "}", 0, "larger than any memory");
    refused("{" U8("a", "4611686018427387904,4,0", "0,0") "}", 0, "larger than any memory");
    accepted("{" U8("a", "0,4611686018427387904,4", "0,0") "}", 0);
    refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "in the middle of a byte");
    refused("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "in the middle of a byte");
}

static void names_are_there_once(void **state)
{
    (void)state;
    refused("{" U8("a", "1", "0,1") "," U8("a", "1", "1,2") "}", 2, "two tensors 'a'");
    refused("{" U8("a", "1", "0,1") "," U8("\\u0061", "1", "1,2") "}", 2, "two tensors 'a'");
    refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "two __metadata__");
    refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "'k' is in __metadata__ twice");
}

static void a_head_that_is_something_else_is_refused(void **state)
{
    (void)state;
    refused("", 0, "not a JSON object");
    refused("[]", 0, "not a JSON object");
    refused(" {}", 0, "not a JSON object");
    refused("{}{}", 0, "text follows the end");
    refused("{\"a\":1}", 0, "'a' is described by a JSON number");
    refused("{\"a\":{}}", 0, "'a' has dtype none");
    refused("{\"a\":{\"dtype\":\"U8\"}}", 0, "'a' has no shape");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "'a' has no data_offsets");
    refused("{\"__metadata__\":[]}", 0, "__metadata__ is a JSON list");
    refused("{\"__metadata__\":{\"k\":1}}", 0, "'k' in __metadata__ is a JSON number");
    refused("{\"\\u0000\":{}}", 0, "not valid JSON");
    refused("{\"\xff\":{}}", 0, "not valid JSON");
}

static void heads_that_are_bombs_are_refused(void **state)
{
    (void)state;
    struct safetensors s;
    struct err err = ERR_INIT;
    char *deep = xcalloc(1, 100001), *wide = xcalloc(1, 400001);
    assert_int_equal(safetensors_read("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &arena, &s, &err), ERR_LIMIT);
    assert_int_equal(safetensors_read("\x01\x00\x00\x04\x00\x00\x00\x00{}", 10, &arena, &s, &err), ERR_LIMIT);
    assert_int_equal(safetensors_read("\x00\x00\x00\x04\x00\x00\x00\x00{}", 10, &arena, &s, &err), ERR_INVALID);
    assert_int_equal(safetensors_read("\x02\x00\x00", 3, &arena, &s, &err), ERR_INVALID);
    memcpy(deep, "{\"a\":", 5);
    memset(deep + 5, '[', 100000 - 5);
    refused(deep, 0, "nested deeper");
    memcpy(wide, "{\"a\":[", 6);
    for (size_t i = 6; i + 2 < 400000; i += 2)
        memcpy(wide + i, "0,", 2);
    refused(wide, 0, "values");
    free(deep);
    free(wide);
}

static struct safetensors_tensor tensor(const char *name, enum safetensors_dtype dtype, size_t n, const uint64_t *shape)
{
    return (struct safetensors_tensor){.name = name, .dtype = dtype, .n_dims = n, .shape = shape};
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    static const uint64_t shape[] = {2, 3};
    static const char values[] = "abcdef0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    struct safetensors_tensor t[] = {tensor("bytes \"\n\xc3\xa4", SAFETENSORS_U8, 2, shape),
                                     tensor("empty", SAFETENSORS_F32, 1, (const uint64_t[]){0}),
                                     tensor("half", SAFETENSORS_BF16, 1, shape),
                                     tensor("long", SAFETENSORS_I64, 2, shape), tensor("one", SAFETENSORS_U8, 0, NULL)};
    static const struct safetensors_meta meta[] = {{"format", "pt"}, {"json", "{\"a\":[\"\\n\"]}"}};
    static const size_t lens[] = {48, 0, 4, 6, 1}; // as they are sorted: long, empty, half, bytes, one
    const struct scatter_source source = {values, sizeof values};
    struct scatter out = SCATTER_INIT;
    struct safetensors s;
    struct err err = ERR_INIT;
    safetensors_sort(t, ARRAY_LEN(t));
    assert_int_equal(safetensors_write_head(&out, t, ARRAY_LEN(t), meta, 2, &err), 0);
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(t); at += t[i++].len) {
        assert_int_equal(t[i].len, lens[i]);
        scatter_add(&out, 0, at, t[i].len);
    }
    assert_int_equal(out.n_parts, 2); // the head, and values that lie side by side in their source
    assert_int_equal((out.len - at) % 8, 0);
    char *doc = xmalloc(out.len);
    scatter_gather(&out, &source, doc);
    if (safetensors_read(doc, out.len, &arena, &s, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(s.n_tensors, ARRAY_LEN(t));
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        const struct safetensors_tensor *back = safetensors_find(&s, t[i].name);
        assert_non_null(back);
        assert_int_equal(back->dtype, t[i].dtype);
        assert_int_equal(back->n_dims, t[i].n_dims);
        assert_int_equal(back->offset, t[i].offset);
        assert_int_equal(back->len, t[i].len);
        assert_int_equal(back->len ? back->offset * 8 % safetensors_dtype_bits(back->dtype) : 0, 0);
    }
    assert_memory_equal(doc + safetensors_find(&s, "long")->offset, values, 48);
    assert_string_equal(safetensors_meta_get(&s, "json"), meta[1].value);
    free(doc);
    scatter_done(&out);
}

static void what_cannot_be_written_is_refused(void **state)
{
    (void)state;
    static const uint64_t huge[] = {(uint64_t)1 << 60, 16};
    struct safetensors_tensor t[] = {tensor("t", SAFETENSORS_F64, 2, huge)};
    struct safetensors_tensor half[] = {tensor("t", SAFETENSORS_F4, 1, (const uint64_t[]){3})};
    struct scatter out = SCATTER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(safetensors_write_head(&out, t, 1, NULL, 0, &err), ERR_LIMIT);
    assert_int_equal(safetensors_write_head(&out, half, 1, NULL, 0, &err), ERR_INVALID);
    assert_int_equal(out.len, 0);
    scatter_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tensors_and_metadata_are_found_by_name, teardown),
        cmocka_unit_test_teardown(the_head_alone_says_how_long_the_document_is, teardown),
        cmocka_unit_test_teardown(every_dtype_of_the_format_is_known, teardown),
        cmocka_unit_test_teardown(odd_shapes_are_fine, teardown),
        cmocka_unit_test_teardown(bytes_belong_to_one_tensor_each, teardown),
        cmocka_unit_test_teardown(lengths_are_what_dtype_and_shape_say, teardown),
        cmocka_unit_test_teardown(names_are_there_once, teardown),
        cmocka_unit_test_teardown(a_head_that_is_something_else_is_refused, teardown),
        cmocka_unit_test_teardown(heads_that_are_bombs_are_refused, teardown),
        cmocka_unit_test_teardown(what_is_written_reads_back, teardown),
        cmocka_unit_test_teardown(what_cannot_be_written_is_refused, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
