// SPDX-License-Identifier: Apache-2.0
// Batches as verl's examples have them, and what is wrong with wrong ones.
#include "tests/unit/common/wire/batch_docs.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_is_told_from_safetensors(void **state)
{
    (void)state;
    assert_true(batch_is_safetensors("{\0\0\0\0\0\0\0{}", 10)); // a head of 123 bytes, cut
    assert_true(batch_is_safetensors("\2\0\0\0\0\0\0\0{}", 10));
    assert_false(batch_is_safetensors("[1,2,3,4,5]", 11));
    assert_false(batch_is_safetensors("{\"a\":[1]}", 9));
    assert_false(batch_is_safetensors("[10]", 4));
    assert_false(batch_is_safetensors("", 0));
}

static void rows_go_where_they_belong(void **state)
{
    (void)state;
    struct doc d =
        tensor_doc("a", SAFETENSORS_I16, 4, 2, 0, "{\"p\" : [ \"x\", [1,2] ,{\"k\":\"],\"}, null]}", "{\"t\":0.7}");
    struct doc piece = doc_slice(&d, 1, 2);
    assert_int_equal(piece.batch.rows, 2);
    assert_string_equal(safetensors_meta_get(&piece.batch.doc, BATCH_COLUMNS), "{\"p\":[[1,2] ,{\"k\":\"],\"}]}");
    assert_string_equal(safetensors_meta_get(&piece.batch.doc, BATCH_META), "{\"t\":0.7}");
    rows_equal(&piece, 0, &d, 1);
    rows_equal(&piece, 1, &d, 2);
    free(piece.data);
    free(d.data);
}

static void a_piece_points_into_the_document(void **state)
{
    (void)state;
    struct doc d = tensor_doc("a", SAFETENSORS_U8, 4, 100, 0, NULL, NULL);
    const struct safetensors_tensor *t = safetensors_find(&d.batch.doc, "a");
    struct scatter s = SCATTER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(batch_slice(&d.batch, 2, 2, &batch_memory, &s, &err), 0);
    assert_int_equal(s.n_parts, 2);
    assert_int_equal(s.parts[0].source, SCATTER_OWN);
    assert_int_equal(s.parts[1].source, 0);
    assert_int_equal(s.parts[1].offset, t->offset + 200);
    assert_int_equal(s.parts[1].len, 200);
    scatter_done(&s);
    free(d.data);
}

static void json_batches_are_split_alike(void **state)
{
    (void)state;
    struct doc d = json_doc("{\"x\" : [1, 2,3 ,4],\"y\":[\"a\",\"b,\",\"c\",[]]}");
    struct doc p[] = {doc_slice(&d, 0, 2), doc_slice(&d, 2, 2), doc_slice(&d, 3, 3)}, back;
    struct err err;
    text_is(&p[0], "{\"x\":[1, 2],\"y\":[\"a\",\"b,\"]}");
    text_is(&p[1], "{\"x\":[3 ,4],\"y\":[\"c\",[]]}");
    text_is(&p[2], "{\"x\":[4,4,4],\"y\":[[],[],[]]}");
    assert_int_equal(doc_join(p, 2, 4, 0, &back, &err), 0);
    text_is(&back, "{\"x\":[1, 2,3 ,4],\"y\":[\"a\",\"b,\",\"c\",[]]}");
    for (size_t i = 0; i < 3; i++)
        free(p[i].data);
    free(back.data);
    free(d.data);
}

// verl's examples of padding in a world of 4, and torch.chunk()'s trap: 5 rows are still 4 pieces.
static void pieces_are_equal(void **state)
{
    (void)state;
    static const size_t cases[][4] = {// rows, pieces, each, added
                                      {10, 4, 3, 2}, {1, 4, 1, 3}, {8, 4, 2, 0}, {5, 4, 2, 3},
                                      {10, 2, 5, 0}, {0, 4, 0, 0}, {3, 1, 3, 0}, {2, 400, 1, 398}};
    struct err err = ERR_INIT;
    size_t each, added;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(batch_pieces(cases[i][0], cases[i][1], true, &each, &added, &err), 0);
        assert_int_equal(each, cases[i][2]);
        assert_int_equal(added, cases[i][3]);
    }
    assert_int_equal(batch_pieces(8, 4, false, &each, &added, &err), 0);
    assert_int_equal(batch_pieces(10, 4, false, &each, &added, &err), ERR_INVALID);
    assert_string_equal(err.msg, "a batch of 10 rows cannot be split into 4 equal pieces: send a multiple, or ask for "
                                 "padding");
}

static void padding_repeats_the_last_row_and_is_taken_off(void **state)
{
    (void)state;
    static const size_t rows[] = {10, 1, 8, 5};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct doc d = tensor_doc("a", SAFETENSORS_U8, rows[k], 3, 7, NULL, NULL), p[4], back;
        size_t each, added;
        struct err err = ERR_INIT;
        assert_int_equal(batch_pieces(rows[k], 4, true, &each, &added, &err), 0);
        for (size_t i = 0; i < 4; i++) {
            p[i] = doc_slice(&d, i * each, each);
            assert_int_equal(p[i].batch.rows, each);
            for (size_t r = 0; r < each; r++)
                rows_equal(&p[i], r, &d, MIN(i * each + r, rows[k] - 1));
        }
        assert_int_equal(doc_join(p, 4, rows[k], added, &back, &err), 0);
        assert_int_equal(back.len, d.len);
        assert_memory_equal(back.data, d.data, d.len);
        for (size_t i = 0; i < 4; i++)
            free(p[i].data);
        free(back.data);
        free(d.data);
    }
}

static void padding_that_cannot_be_told_is_refused(void **state)
{
    (void)state;
    struct doc p[] = {json_doc("{\"x\":[1]}"), json_doc("{\"x\":[2]}")}, back;
    struct err err;
    assert_int_equal(doc_join(p, 2, 3, 1, &back, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "rank 0 got 2 rows and returned 1"));
    assert_int_equal(doc_join(p, 2, 3, 0, &back, &err), 0); // without padding a method may return what it likes
    text_is(&back, "{\"x\":[1,2]}");
    free(back.data);
    free(p[0].data);
    free(p[1].data);
}

static void joins_to(const char *one, const char *two, const char *want)
{
    struct doc p[] = {tensor_doc("a", SAFETENSORS_U8, 1, 1, 0, NULL, one),
                      tensor_doc("a", SAFETENSORS_U8, 1, 1, 1, NULL, two)},
               back;
    struct err err;
    if (doc_join(p, 2, 2, 0, &back, &err) == 0) {
        const char *got = safetensors_meta_get(&back.batch.doc, BATCH_META);
        assert_string_equal(got ? got : "none", want);
        free(back.data);
    } else {
        assert_non_null(strstr(err.msg, want));
    }
    free(p[0].data);
    free(p[1].data);
}

static void metadata_must_agree_and_metrics_are_merged(void **state)
{
    (void)state;
    joins_to(NULL, NULL, "none");
    joins_to("{\"t\":0.7,\"s\":\"x\"}", "{\"s\":\"x\",\"t\":0.7}", "{\"t\":0.7,\"s\":\"x\"}");
    joins_to("{\"t\":1}", "{\"u\":2}", "{\"t\":1,\"u\":2}");
    joins_to("{\"t\":1}", NULL, "{\"t\":1}");
    joins_to("{\"t\":1}", "{\"t\":2}", "'t' of cadre.meta is 1 of rank 0, but 2 of rank 10");
    joins_to("{\"t\":1,\"t\":2}", NULL, "'t' of cadre.meta is 1 of rank 0, but 2 of rank 0");
    joins_to("{\"metrics\":{\"loss\":0.5,\"lr\":1e-5}}", "{\"metrics\":{\"loss\":0.25,\"lr\":1e-5}}",
             "{\"metrics\":{\"loss\":[0.5,0.25],\"lr\":[1e-5,1e-5]}}");
    joins_to("{\"metrics\":[{\"a\":1},{\"a\":2}],\"k\":[0]}", "{\"metrics\":{\"a\":[3]},\"k\":[0]}",
             "{\"k\":[0],\"metrics\":{\"a\":[1,2,[3]]}}");
    joins_to("{\"metrics\":null}", "{\"metrics\":{\"a\":3}}", "{\"metrics\":{\"a\":[3]}}");
    joins_to("{\"metrics\":1}", NULL, "`metrics` of rank 0 is a JSON number");
    joins_to(NULL, "{\"t\":tru}", "cadre.meta of rank 10: not valid JSON");
}

static void do_not_join(struct doc one, struct doc two, const char *why)
{
    struct doc p[] = {one, two}, back;
    struct err err;
    if (doc_join(p, 2, 0, 0, &back, &err) == 0)
        fail_msg("joined, but it should say: %s", why);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
    free(one.data);
    free(two.data);
}

#define PLAIN(name, dtype, rows, width) tensor_doc(name, SAFETENSORS_##dtype, rows, width, 0, NULL, NULL)

static void results_that_differ_are_not_joined(void **state)
{
    (void)state;
    do_not_join(PLAIN("a", F32, 1, 2), PLAIN("a", F32, 1, 3),
                "tensor 'a' is F32 [1,2] of rank 0, F32 [1,3] of rank 10");
    do_not_join(PLAIN("a", F32, 1, 2), PLAIN("a", I32, 1, 2),
                "tensor 'a' is F32 [1,2] of rank 0, I32 [1,2] of rank 10");
    do_not_join(PLAIN("a", F32, 1, 2), PLAIN("b", F32, 1, 2), "rank 0 has tensor 'a', rank 10 has not");
    do_not_join(PLAIN(NULL, U8, 0, 0), PLAIN("b", F32, 1, 2), "rank 10 has tensor 'b', rank 0 has not");
    do_not_join(json_doc("{\"a\":[1]}"), json_doc("{\"a\":[1],\"b\":[2]}"), "rank 10 has column 'b', rank 0 has not");
    do_not_join(json_doc("{\"a\":[1],\"b\":[2]}"), json_doc("{\"c\":[1],\"b\":[2]}"), "rank 0 has column 'a', rank 10");
    do_not_join(json_doc("{\"a\":[1]}"), PLAIN("a", F32, 1, 2), "one returned JSON");
}

static void refused(const char *text, size_t len, const char *why)
{
    struct batch b;
    struct err err = ERR_INIT;
    char *exact = xmalloc(len);
    memcpy(exact, text, len);
    if (batch_read(exact, len, &batch_memory, &b, &err) == 0)
        fail_msg("accepted, but it should say: %s", why);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
    free(exact);
}

static void refused_json(const char *text, const char *why)
{
    refused(text, strlen(text), why);
}

static void refused_head(const char *head, size_t values, const char *why)
{
    char doc[4096] = {0};
    doc[0] = (char)(strlen(head) % 256);
    doc[1] = (char)(strlen(head) / 256);
    memcpy(doc + 8, head, strlen(head));
    refused(doc, 8 + strlen(head) + values, why);
}

static void what_is_no_batch_is_refused(void **state)
{
    (void)state;
    refused_json("", "this is not a batch");
    refused_json("[1,2]", "this is not a batch");
    refused_json("null", "this is not a batch");
    refused_json("{\"a\":1}", "'a' is not a list");
    refused_json("{\"a\":[1}", "not valid JSON at byte");
    refused_json("{\"a\":[1]", "not valid JSON at byte");
    refused("{\"abc\0\":[1]}", 12, "has a byte 0");
    refused_json("{\"a\":[1],\"b\":[]}", "'b' has 0 rows, but 'a' has 1");
    refused_json("{\"a\":[1],\"a\":[2]}", "two columns 'a'");
    refused_json(arena_printf(&batch_memory, "{\"%02000d\":[1]}", 0),
                 "the name of a column has 2000 bytes; at most 1024");
    refused_head(
        arena_printf(&batch_memory, "{\"%02000d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 0), 1,
        "a name of 2000 bytes");
    refused_head("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, "tensor 'a' is a single number");
    refused_head("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                 3, "'b' has 2 rows, but 'a' has 1");
    refused_head("{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3, "do not end at whole bytes");
    refused_head("{\"__metadata__\":{\"cadre.columns\":\"[]\"}}", 0, "cadre.columns: this is not a batch");
    refused_head("{\"__metadata__\":{\"cadre.meta\":\"[1]\"}}", 0, "cadre.meta must be a JSON object, but is: [1]");
    refused_head("{\"__metadata__\":{\"cadre.meta\":\"{\"}}", 0, "cadre.meta must be a JSON object, but is: {");
    refused_head("{\"__metadata__\":{\"cadre.columns\":\"{\\\"p\\\":[1,2]}\"},"
                 "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                 1, "'p' has 2 rows, but 'a' has 1");
    refused_head("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2, "end at byte");
}

// Row S2-10 of the notebooks: zeros(10) on two ranks, each adds its rank; the caller's own stays zeros.
static void two_ranks_add_their_rank(void **state)
{
    (void)state;
    struct doc d = json_doc("{\"a\":[0,0,0,0,0,0,0,0,0,0]}"), back;
    size_t each, added;
    struct err err = ERR_INIT;
    assert_int_equal(batch_pieces(d.batch.rows, 2, false, &each, &added, &err), 0);
    struct doc pieces[] = {doc_slice(&d, 0, each), doc_slice(&d, each, each)};
    text_is(&pieces[1], "{\"a\":[0,0,0,0,0]}");
    struct doc answers[] = {json_doc("{\"a\":[0,0,0,0,0]}"), json_doc("{\"a\":[1,1,1,1,1]}")};
    assert_int_equal(doc_join(answers, 2, 10, added, &back, &err), 0);
    text_is(&back, "{\"a\":[0,0,0,0,0,1,1,1,1,1]}");
    text_is(&d, "{\"a\":[0,0,0,0,0,0,0,0,0,0]}");
    for (size_t i = 0; i < 2; i++) {
        free(pieces[i].data);
        free(answers[i].data);
    }
    free(back.data);
    free(d.data);
}

static void a_layout_puts_the_widest_values_first_and_keeps_the_order_of_equals(void **state)
{
    (void)state;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const uint64_t two[] = {2};
    const char *const dtypes[] = {"U8", "F64", "I16", "U64"};
    struct safetensors_tensor tensors[4];
    struct batch_layout l;
    struct batch b;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(batch_layout_tensor(dtypes[i], dtypes[i], two, 1, &tensors[i], &err), 0);
    assert_int_equal(batch_layout_of(tensors, 4, "{\"p\":[1,2]}", NULL, &a, &l, &err), 0);
    const size_t want[] = {36, 0, 32, 16};
    assert_memory_equal(l.offsets, want, sizeof want);
    assert_int_equal(l.len, 38);
    assert_int_equal(batch_read_head(l.head.own.data, l.head.own.len, &a, &b, &err), 0);
    assert_int_equal(b.rows, 2);
    assert_int_equal(safetensors_find(&b.doc, "U8")->offset, l.head.own.len + 36);
    assert_int_equal(batch_layout_check(&tensors[0], "ab", 2, &err), 0);
    assert_int_equal(batch_layout_check(&tensors[0], NULL, 2, &err), ERR_INVALID);
    assert_int_equal(batch_layout_check(&tensors[0], "abc", 3, &err), ERR_INVALID);
    batch_layout_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(json_is_told_from_safetensors, batch_teardown),
        cmocka_unit_test_teardown(rows_go_where_they_belong, batch_teardown),
        cmocka_unit_test_teardown(a_piece_points_into_the_document, batch_teardown),
        cmocka_unit_test_teardown(json_batches_are_split_alike, batch_teardown),
        cmocka_unit_test_teardown(pieces_are_equal, batch_teardown),
        cmocka_unit_test_teardown(padding_repeats_the_last_row_and_is_taken_off, batch_teardown),
        cmocka_unit_test_teardown(padding_that_cannot_be_told_is_refused, batch_teardown),
        cmocka_unit_test_teardown(metadata_must_agree_and_metrics_are_merged, batch_teardown),
        cmocka_unit_test_teardown(results_that_differ_are_not_joined, batch_teardown),
        cmocka_unit_test_teardown(what_is_no_batch_is_refused, batch_teardown),
        cmocka_unit_test_teardown(two_ranks_add_their_rank, batch_teardown),
        cmocka_unit_test(a_layout_puts_the_widest_values_first_and_keeps_the_order_of_equals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
