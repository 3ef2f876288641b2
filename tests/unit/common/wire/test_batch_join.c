// SPDX-License-Identifier: Apache-2.0
// Random batches, whose rows must be found again wherever they were split and joined, in one go or in steps.
#include "common/wire/batch_join.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "tests/unit/common/wire/batch_docs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char *copy = arena_strdup(&batch_memory, buf_str(&text));
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
        uint64_t *shape = arena_array(&batch_memory, 3, sizeof *shape);
        shape[0] = rows;
        shape[1] = rand_below(r, 4) * 8; // so that rows of less than a byte an element are whole bytes
        shape[2] = rand_below(r, 3);
        tensors[i] =
            (struct safetensors_tensor){.name = arena_printf(&batch_memory, "t%zu", i),
                                        .dtype = (enum safetensors_dtype)rand_below(r, SAFETENSORS_DTYPE_COUNT),
                                        .n_dims = 2 + rand_below(r, 2),
                                        .shape = shape};
    }
    s = SCATTER_INIT;
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

static void split_and_join(const struct doc *d, size_t n)
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

static void random_batches_are_the_same_after_splitting_and_joining(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 1);
    for (int round = 0; round < 400; round++) {
        size_t rows = rand_below(&r, 12);
        struct doc d = round % 4 ? random_doc(&r, rows) : random_json(&r, rows);
        split_and_join(&d, 1 + rand_below(&r, 8));
        free(d.data);
        arena_done(&batch_memory);
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
        arena_done(&batch_memory);
    }
}

struct splitting {
    const struct doc *d;
    size_t n;
};

static void split_and_join_all(void *ctx)
{
    const struct splitting *c = ctx;
    split_and_join(c->d, c->n);
}

// It stops wherever it can.
static void in_steps(const struct doc *d, size_t n, size_t units)
{
    struct splitting c = {d, n};
    struct fiber *f = fiber_new(split_and_join_all, &c);
    while (!fiber_run(f, units))
        ;
}

static void batches_are_the_same_if_they_are_split_and_joined_in_steps(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 3);
    for (int round = 0; round < 40; round++) {
        struct doc d = round % 4 ? random_doc(&r, rand_below(&r, 12)) : random_json(&r, rand_below(&r, 12));
        in_steps(&d, 1 + rand_below(&r, 8), 1 + rand_below(&r, 100));
        free(d.data);
        arena_done(&batch_memory);
    }
}

static void a_column_may_be_long(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(1 << 20);
    for (size_t rows = BATCH_BLOCK - 1; rows <= 3 * BATCH_BLOCK; rows += BATCH_BLOCK / 2 + 1) {
        buf_reset(&text);
        buf_puts(&text, "{\"a\":[0");
        for (size_t i = 1; i < rows; i++)
            buf_printf(&text, ",%zu", i);
        buf_puts(&text, "]}");
        struct doc d = json_doc(buf_str(&text));
        assert_int_equal(d.batch.rows, rows);
        for (size_t i = 0; i < rows; i += 7)
            assert_int_equal(strtoul(cell(&d, &d.batch.columns[0], i), NULL, 10), i);
        in_steps(&d, 3, 1000);
        free(d.data);
        arena_done(&batch_memory);
    }
    buf_done(&text);
}

// Each batch repeats the names, so the number of tensors and columns is limited, even if there are few rows.
static void there_may_be_so_many_segments(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const struct batch json = {.json = true, .n_columns = 32}, tensors = {.n_columns = 9, .doc = {.n_tensors = 32}};
    assert_int_equal(batch_check_parts(&json, 1024, &err), 0);
    assert_int_equal(batch_check_parts(&tensors, 1024, &err), 0);
    assert_int_equal(batch_check_parts(&tensors, 1025, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "1025 batches of 32 tensors each; all together may have at most 32768");
}

static void padding_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct buf columns = BUF_INIT(4 << 20);
    struct scatter s;
    struct err err = ERR_INIT;
    buf_puts(&columns, "{\"a\":[\"");
    while (columns.len < 2 << 20)
        buf_puts(&columns, "0123456789abcdef");
    buf_puts(&columns, "\"]}");
    struct doc d = tensor_doc("t", SAFETENSORS_U8, 1, 1, 0, buf_str(&columns), NULL);
    s = SCATTER_INIT;
    assert_int_equal(batch_slice(&d.batch, 0, 1000, &batch_memory, &s, &err), ERR_LIMIT);
    assert_non_null(strstr(err.msg, "with its padding"));
    scatter_done(&s);
    free(d.data);
    buf_done(&columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_batches_are_the_same_after_splitting_and_joining, batch_teardown),
        cmocka_unit_test_teardown(pieces_of_any_size_join, batch_teardown),
        cmocka_unit_test_teardown(batches_are_the_same_if_they_are_split_and_joined_in_steps, batch_teardown),
        cmocka_unit_test_teardown(a_column_may_be_long, batch_teardown),
        cmocka_unit_test_teardown(there_may_be_so_many_segments, batch_teardown),
        cmocka_unit_test_teardown(padding_that_is_too_long_is_refused, batch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
