// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/wire/batch_docs.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena batch_memory;

int batch_teardown(void **state)
{
    (void)state;
    arena_done(&batch_memory);
    return 0;
}

struct doc doc_read(struct doc d)
{
    struct err err = ERR_INIT;
    if (batch_read(d.data, d.len, &batch_memory, &d.batch, &err) < 0)
        fail_msg("%s", err.msg);
    return d;
}

struct doc doc_of(const struct scatter *s, const struct doc *sources, size_t n)
{
    struct scatter_source *list = arena_array(&batch_memory, n, sizeof *list);
    struct doc d = {.data = xmalloc(s->len), .len = s->len};
    for (size_t i = 0; i < n; i++)
        list[i] = (struct scatter_source){sources[i].data, sources[i].len};
    scatter_gather(s, list, d.data);
    return doc_read(d);
}

struct doc json_doc(const char *text)
{
    struct doc d = {.data = xmalloc(strlen(text)), .len = strlen(text)};
    memcpy(d.data, text, d.len);
    return doc_read(d);
}

struct doc tensor_doc(const char *name, enum safetensors_dtype dtype, size_t rows, size_t width, uint8_t first,
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
    s = SCATTER_INIT;
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

struct doc doc_slice(const struct doc *d, size_t from, size_t rows)
{
    struct scatter s = SCATTER_INIT;
    struct err err = ERR_INIT;
    if (batch_slice(&d->batch, from, rows, &batch_memory, &s, &err) < 0)
        fail_msg("%s", err.msg);
    struct doc piece = doc_of(&s, d, 1);
    scatter_done(&s);
    return piece;
}

int doc_join(const struct doc *docs, size_t n, size_t rows, size_t added, struct doc *ret, struct err *err)
{
    size_t each = (rows + added) / n;
    struct batch_result *results = arena_array(&batch_memory, n, sizeof *results);
    struct scatter s = SCATTER_INIT;
    *err = ERR_INIT;
    *ret = (struct doc){0};
    for (size_t i = 0; i < n; i++)
        results[i] = (struct batch_result){&docs[i].batch, (uint32_t)i * 10, added ? batch_padding(rows, each, i) : 0};
    int r = batch_join(results, n, added ? each : 0, &batch_memory, &s, err);
    assert_int_equal(r, err->code);
    if (r == 0)
        *ret = doc_of(&s, docs, n);
    scatter_done(&s);
    return r;
}

void text_is(const struct doc *d, const char *want)
{
    char *text = xcalloc(1, d->len + 1);
    memcpy(text, d->data, d->len);
    assert_string_equal(text, want);
    free(text);
}

const uint8_t *row(const struct doc *d, const char *name, size_t i, size_t *ret_len)
{
    const struct safetensors_tensor *t = safetensors_find(&d->batch.doc, name);
    assert_non_null(t);
    assert_in_range(i, 0, t->shape[0] - 1);
    *ret_len = t->len / t->shape[0];
    return (const uint8_t *)d->data + t->offset + i * *ret_len;
}

char *cell(const struct doc *d, const struct batch_column *c, size_t i)
{
    const char *text = c->text ? c->text : d->data;
    assert_in_range(i, 0, c->n - 1);
    return arena_strndup(&batch_memory, text + batch_cell(c, i)->begin,
                         batch_cell(c, i)->end - batch_cell(c, i)->begin);
}

void rows_equal(const struct doc *a, size_t i, const struct doc *b, size_t k)
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

void kinds_equal(const struct doc *a, const struct doc *b)
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
