// SPDX-License-Identifier: Apache-2.0
// Batches as verl's examples have them, what is wrong with wrong ones, and random batches, whose rows must be
// found again wherever it was cut and joined.

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/wire/batch_join.h"

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

// A document in an allocation of just its size, and what was read out of it.
struct doc {
    char *data;
    size_t len;
    struct batch batch;
};

static struct doc doc_read(struct doc d)
{
    struct err err = ERR_INIT;
    if (batch_read(d.data, d.len, &arena, &d.batch, &err) < 0)
        fail_msg("%s", err.msg);
    return d;
}

static struct doc doc_of(const struct scatter *s, const struct doc *sources, size_t n)
{
    struct scatter_source *list = arena_array(&arena, n, sizeof *list);
    struct doc d = {.data = xmalloc(s->len), .len = s->len};
    for (size_t i = 0; i < n; i++)
        list[i] = (struct scatter_source){sources[i].data, sources[i].len};
    scatter_gather(s, list, d.data);
    return doc_read(d);
}

static struct doc json_doc(const char *text)
{
    struct doc d = {.data = xmalloc(strlen(text)), .len = strlen(text)};
    memcpy(d.data, text, d.len);
    return doc_read(d);
}

// Tensors of U8 whose values count up from `first`.
static struct doc tensor_doc(const char *name, enum safetensors_dtype dtype, size_t rows, size_t width, uint8_t first,
                             const char *columns, const char *meta)
{
    const uint64_t shape[] = {rows, width};
    struct safetensors_tensor t = {.name = name, .dtype = dtype, .n_dims = 2, .shape = shape};
    struct safetensors_meta m[2];
    size_t n_meta = 0;
    struct scatter s;
    struct err err = ERR_INIT;
    if (columns)
        m[n_meta++] = (struct safetensors_meta){BATCH_COLUMNS, columns};
    if (meta)
        m[n_meta++] = (struct safetensors_meta){BATCH_META, meta};
    scatter_init(&s);
    assert_int_equal(safetensors_write_head(&s, &t, name != NULL, m, n_meta, &err), 0);
    uint8_t *values = xmalloc(t.len);
    for (size_t i = 0; i < t.len; i++)
        values[i] = (uint8_t)(first + i);
    scatter_add(&s, 0, 0, t.len);
    struct doc source = {.data = (char *)values, .len = t.len}, d = doc_of(&s, &source, 1);
    free(values);
    scatter_done(&s);
    return d;
}

static struct doc doc_slice(const struct doc *d, size_t from, size_t rows)
{
    struct scatter s;
    struct err err = ERR_INIT;
    scatter_init(&s);
    if (batch_slice(&d->batch, from, rows, &arena, &s, &err) < 0)
        fail_msg("%s", err.msg);
    struct doc piece = doc_of(&s, d, 1);
    scatter_done(&s);
    return piece;
}

// Of pieces in their order, of `rows` rows and `added` of padding.
static int doc_join(const struct doc *docs, size_t n, size_t rows, size_t added, struct doc *ret, struct err *err)
{
    size_t each = (rows + added) / n;
    struct batch_result *results = arena_array(&arena, n, sizeof *results);
    struct scatter s;
    scatter_init(&s);
    *err = ERR_INIT;
    *ret = (struct doc){0};
    for (size_t i = 0; i < n; i++)
        results[i] = (struct batch_result){&docs[i].batch, (uint32_t)i * 10, added ? batch_padding(rows, each, i) : 0};
    int r = batch_join(results, n, added ? each : 0, &arena, &s, err);
    assert_int_equal(r, err->code);
    if (r == 0)
        *ret = doc_of(&s, docs, n);
    scatter_done(&s);
    return r;
}

static void text_is(const struct doc *d, const char *want)
{
    char *text = xcalloc(1, d->len + 1);
    memcpy(text, d->data, d->len);
    assert_string_equal(text, want);
    free(text);
}

static const uint8_t *row(const struct doc *d, const char *name, size_t i, size_t *ret_len)
{
    const struct safetensors_tensor *t = safetensors_find(&d->batch.doc, name);
    assert_non_null(t);
    assert_in_range(i, 0, t->shape[0] - 1);
    *ret_len = t->len / t->shape[0];
    return (const uint8_t *)d->data + t->offset + i * *ret_len;
}

static char *cell(const struct doc *d, const struct batch_column *c, size_t i)
{
    const char *text = c->text ? c->text : d->data;
    assert_in_range(i, 0, c->n - 1);
    return arena_strndup(&arena, text + c->cells[i].begin, c->cells[i].end - c->cells[i].begin);
}

// Row i of a is row k of b, in every tensor and column.
static void rows_equal(const struct doc *a, size_t i, const struct doc *b, size_t k)
{
    assert_int_equal(a->batch.doc.n_tensors, b->batch.doc.n_tensors);
    assert_int_equal(a->batch.n_columns, b->batch.n_columns);
    for (size_t t = 0; t < a->batch.doc.n_tensors; t++) {
        size_t len, other;
        const uint8_t *one = row(a, a->batch.doc.tensors[t].name, i, &len);
        const uint8_t *two = row(b, a->batch.doc.tensors[t].name, k, &other);
        assert_int_equal(len, other);
        if (len)
            assert_memory_equal(one, two, len);
    }
    for (size_t c = 0; c < a->batch.n_columns; c++) {
        const struct batch_column *one = &a->batch.columns[c], *two = batch_column(&b->batch, one->name);
        assert_non_null(two);
        assert_string_equal(cell(a, one, i), cell(b, two, k));
    }
}

// The same but for rows: names, dtypes, dimensions, metadata.
static void kinds_equal(const struct doc *a, const struct doc *b)
{
    assert_int_equal(a->batch.json, b->batch.json);
    assert_int_equal(a->batch.doc.n_meta, b->batch.doc.n_meta);
    for (size_t t = 0; t < a->batch.doc.n_tensors; t++) {
        const struct safetensors_tensor *one = &a->batch.doc.tensors[t];
        const struct safetensors_tensor *two = safetensors_find(&b->batch.doc, one->name);
        assert_non_null(two);
        assert_int_equal(one->dtype, two->dtype);
        assert_int_equal(one->n_dims, two->n_dims);
        for (size_t i = 1; i < one->n_dims; i++)
            assert_int_equal(one->shape[i], two->shape[i]);
    }
    for (size_t i = 0; i < a->batch.doc.n_meta; i++)
        if (!str_eq(a->batch.doc.meta[i].key, BATCH_COLUMNS))
            assert_string_equal(a->batch.doc.meta[i].value,
                                safetensors_meta_get(&b->batch.doc, a->batch.doc.meta[i].key));
}

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
    struct scatter s;
    struct err err = ERR_INIT;
    scatter_init(&s);
    assert_int_equal(batch_slice(&d.batch, 2, 2, &arena, &s, &err), 0);
    assert_int_equal(s.n_parts, 2);
    assert_int_equal(s.parts[0].source, SCATTER_OWN);
    assert_int_equal(s.parts[1].source, 0);
    assert_int_equal(s.parts[1].offset, t->offset + 200);
    assert_int_equal(s.parts[1].len, 200);
    scatter_done(&s);
    free(d.data);
}

static void json_batches_are_cut_alike(void **state)
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
    assert_string_equal(err.msg, "a batch of 10 rows cannot be cut into 4 equal pieces: send a multiple, or ask for "
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
    assert_non_null(strstr(err.msg, "rank 0 was given 2 rows and returned 1"));
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
    if (batch_read(exact, len, &arena, &b, &err) == 0)
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
    char doc[512] = {0};
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

static void random_value(struct rand *r, struct buf *out)
{
    static const char *const values[] = {"1",       "-2.5e3",          "\"\"", "\"a\\\"],{\"", "null",
                                         "[1,[2]]", "{\"k\":[\"}\"]}", "true", "\"\xc3\xa4\"", "[]",
                                         "{}"};
    buf_puts(out, values[rand_below(r, ARRAY_LEN(values))]);
}

static char *random_columns(struct rand *r, size_t rows)
{
    struct buf text = BUF_INIT(1 << 16);
    size_t n = rand_below(r, 4);
    buf_puts(&text, "{");
    for (size_t c = 0; c < n; c++) {
        buf_printf(&text, "%s\"c%zu\":[", c ? ", " : "", c);
        for (size_t i = 0; i < rows; i++) {
            buf_puts(&text, i ? "," : "");
            buf_puts(&text, rand_below(r, 4) ? "" : " ");
            random_value(r, &text);
        }
        buf_puts(&text, "]");
    }
    buf_puts(&text, "}");
    char *copy = arena_strdup(&arena, buf_str(&text));
    buf_done(&text);
    return copy;
}

static struct doc random_doc(struct rand *r, size_t rows)
{
    struct safetensors_tensor tensors[6];
    struct safetensors_meta meta[] = {
        {BATCH_COLUMNS, random_columns(r, rows)}, {BATCH_META, "{\"t\":1}"}, {"format", "pt"}};
    size_t n = rand_below(r, 6), len = 0;
    struct scatter s;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < n; i++) {
        uint64_t *shape = arena_array(&arena, 3, sizeof *shape);
        shape[0] = rows;
        shape[1] = rand_below(r, 4) * 8; // so that rows of less than a byte an element are whole bytes
        shape[2] = rand_below(r, 3);
        tensors[i] =
            (struct safetensors_tensor){.name = arena_printf(&arena, "t%zu", i),
                                        .dtype = (enum safetensors_dtype)rand_below(r, SAFETENSORS_DTYPE_COUNT),
                                        .n_dims = 2 + rand_below(r, 2),
                                        .shape = shape};
    }
    scatter_init(&s);
    assert_int_equal(safetensors_write_head(&s, tensors, n, meta, rand_below(r, 4), &err),
                     0); // in any order: unaligned
    for (size_t i = 0; i < n; i++)
        len += tensors[i].len;
    char *values = xmalloc(len);
    for (size_t i = 0; i < len; i++)
        values[i] = (char)rand_u64(r);
    scatter_add(&s, 0, 0, len);
    struct doc source = {.data = values, .len = len}, d = doc_of(&s, &source, 1);
    free(values);
    scatter_done(&s);
    return d;
}

static struct doc random_json(struct rand *r, size_t rows)
{
    return json_doc(random_columns(r, rows));
}

// Whatever they were before.
static void values_are_aligned(const struct safetensors *s)
{
    for (size_t i = 0; i < s->n_tensors; i++) {
        unsigned bits = safetensors_dtype_bits(s->tensors[i].dtype);
        assert_int_equal(bits % 8 || !s->tensors[i].len ? 0 : s->tensors[i].offset % (bits / 8), 0);
    }
}

static void cut_and_join(const struct doc *d, size_t n)
{
    struct doc pieces[16], back;
    size_t each, added, rows = d->batch.rows;
    struct err err = ERR_INIT;
    assert_int_equal(batch_pieces(rows, n, true, &each, &added, &err), 0);
    for (size_t i = 0; i < n; i++) {
        pieces[i] = doc_slice(d, i * each, each);
        kinds_equal(d, &pieces[i]);
        values_are_aligned(&pieces[i].batch.doc);
        assert_int_equal(pieces[i].batch.rows, each);
        for (size_t k = 0; k < each; k++)
            rows_equal(&pieces[i], k, d, MIN(i * each + k, rows - 1));
    }
    if (doc_join(pieces, n, rows, added, &back, &err) < 0)
        fail_msg("%s", err.msg);
    kinds_equal(d, &back);
    assert_int_equal(back.batch.rows, rows);
    assert_int_equal(back.batch.doc.n_tensors, d->batch.doc.n_tensors);
    assert_int_equal(back.batch.n_columns, d->batch.n_columns);
    for (size_t k = 0; k < rows; k++)
        rows_equal(&back, k, d, k);
    free(back.data);
    for (size_t i = 0; i < n; i++)
        free(pieces[i].data);
}

static void random_batches_are_the_same_after_cutting_and_joining(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 1);
    for (int round = 0; round < 400; round++) {
        size_t rows = rand_below(&r, 12);
        struct doc d = round % 4 ? random_doc(&r, rows) : random_json(&r, rows);
        cut_and_join(&d, 1 + rand_below(&r, 8));
        free(d.data);
        arena_done(&arena);
    }
}

static void pieces_of_any_size_join(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 2);
    for (int round = 0; round < 100; round++) {
        size_t rows = rand_below(&r, 12), at = 0, n = 0;
        struct doc d = round % 4 ? random_doc(&r, rows) : random_json(&r, rows), pieces[16], back;
        struct err err;
        rows = d.batch.rows;
        for (; n < 15; at += pieces[n++].batch.rows)
            pieces[n] = doc_slice(&d, at, n == 14 ? rows - at : rand_below(&r, rows - at + 1));
        assert_int_equal(doc_join(pieces, n, rows, 0, &back, &err), 0);
        assert_int_equal(back.batch.rows, rows);
        for (size_t k = 0; k < rows; k++)
            rows_equal(&back, k, &d, k);
        for (size_t i = 0; i < n; i++)
            free(pieces[i].data);
        free(back.data);
        free(d.data);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(json_is_told_from_safetensors, teardown),
        cmocka_unit_test_teardown(rows_go_where_they_belong, teardown),
        cmocka_unit_test_teardown(a_piece_points_into_the_document, teardown),
        cmocka_unit_test_teardown(json_batches_are_cut_alike, teardown),
        cmocka_unit_test_teardown(pieces_are_equal, teardown),
        cmocka_unit_test_teardown(padding_repeats_the_last_row_and_is_taken_off, teardown),
        cmocka_unit_test_teardown(padding_that_cannot_be_told_is_refused, teardown),
        cmocka_unit_test_teardown(metadata_must_agree_and_metrics_are_merged, teardown),
        cmocka_unit_test_teardown(results_that_differ_are_not_joined, teardown),
        cmocka_unit_test_teardown(what_is_no_batch_is_refused, teardown),
        cmocka_unit_test_teardown(two_ranks_add_their_rank, teardown),
        cmocka_unit_test_teardown(random_batches_are_the_same_after_cutting_and_joining, teardown),
        cmocka_unit_test_teardown(pieces_of_any_size_join, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
