// SPDX-License-Identifier: Apache-2.0
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch.h"

#include <string.h>

static int check_padding(const struct batch_result *results, size_t n, size_t given, struct err *err)
{
    for (size_t i = 0; i < n && given; i++)
        if (results[i].batch->rows != given)
            return err_set(err, ERR_INVALID,
                           "rank %u was given %zu rows and returned %zu: which of them are padding cannot be told; a "
                           "method that is called with padding must return a row for each row",
                           results[i].rank, given, results[i].batch->rows);
    return 0;
}

static size_t rows_of(const struct batch_result *result)
{
    return result->batch->rows - result->padding;
}

static void describe(const struct safetensors_tensor *t, char *out, size_t size)
{
    struct buf text = BUF_INIT(size - 1);
    buf_printf(&text, "%s [", safetensors_dtype_name(t->dtype));
    for (size_t i = 0; i < t->n_dims && !text.over; i++)
        buf_printf(&text, "%s%llu", i ? "," : "", (unsigned long long)t->shape[i]);
    buf_puts(&text, "]");
    memcpy(out, buf_str(&text), text.len + 1);
    buf_done(&text);
}

static int check_tensor(const struct safetensors_tensor *t, uint32_t first, const struct safetensors_tensor *u,
                        uint32_t rank, struct err *err)
{
    bool same = t->dtype == u->dtype && t->n_dims == u->n_dims &&
                memcmp(t->shape + 1, u->shape + 1, (t->n_dims - 1) * sizeof *t->shape) == 0;
    char one[96], other[96];
    if (same)
        return 0;
    describe(t, one, sizeof one);
    describe(u, other, sizeof other);
    return err_set(err, ERR_INVALID,
                   "the results do not fit together: tensor '%.64s' is %s of rank %u, %s of rank %u; only the first "
                   "dimension may differ",
                   t->name, one, first, other, rank);
}

static int only_one_has(const char *what, const char *name, uint32_t has, uint32_t lacks, struct err *err)
{
    return err_set(err, ERR_INVALID, "the results do not fit together: rank %u has %s '%.64s', rank %u has not", has,
                   what, name, lacks);
}

static int check_tensors(const struct batch_result *first, const struct batch_result *other, struct err *err)
{
    const struct safetensors *s = &first->batch->doc, *o = &other->batch->doc;
    int r = 0;
    for (size_t i = 0; i < s->n_tensors && r == 0; i++) {
        const struct safetensors_tensor *u = safetensors_find(o, s->tensors[i].name);
        if (!u)
            return only_one_has("tensor", s->tensors[i].name, first->rank, other->rank, err);
        r = check_tensor(&s->tensors[i], first->rank, u, other->rank, err);
    }
    for (size_t i = 0; i < o->n_tensors && r == 0 && o->n_tensors != s->n_tensors; i++)
        if (!safetensors_find(s, o->tensors[i].name))
            return only_one_has("tensor", o->tensors[i].name, other->rank, first->rank, err);
    return r;
}

static int check_columns(const struct batch_result *first, const struct batch_result *other, struct err *err)
{
    const struct batch *b = first->batch, *o = other->batch;
    for (size_t i = 0; i < b->n_columns; i++)
        if (!batch_column(o, b->columns[i].name))
            return only_one_has("column", b->columns[i].name, first->rank, other->rank, err);
    for (size_t i = 0; i < o->n_columns && o->n_columns != b->n_columns; i++)
        if (!batch_column(b, o->columns[i].name))
            return only_one_has("column", o->columns[i].name, other->rank, first->rank, err);
    return 0;
}

static int check_all(const struct batch_result *results, size_t n, struct err *err)
{
    int r = 0;
    for (size_t i = 1; i < n && r == 0; i++) {
        if (results[i].batch->json != results[0].batch->json)
            return err_set(err, ERR_INVALID,
                           "the results do not fit together: of the ranks %u and %u one returned JSON, the other a "
                           "safetensors document",
                           results[0].rank, results[i].rank);
        r = check_tensors(&results[0], &results[i], err);
        if (r == 0)
            r = check_columns(&results[0], &results[i], err);
    }
    return r;
}

static void join_column(const struct batch_result *results, size_t n, size_t k, struct scatter *out)
{
    bool comma = false;
    for (size_t i = 0; i < n; i++) {
        const struct batch_column *c = batch_column(results[i].batch, results[0].batch->columns[k].name);
        size_t rows = rows_of(&results[i]);
        if (!rows)
            continue;
        size_t begin = c->cells[0].begin, len = c->cells[rows - 1].end - begin;
        scatter_own(out, ",", comma);
        comma = true;
        if (c->text)
            scatter_own(out, c->text + begin, len);
        else
            scatter_add(out, (uint32_t)i, begin, len);
    }
}

static void join_columns(const struct batch_result *results, size_t n, struct scatter *out)
{
    const struct batch *first = results[0].batch;
    scatter_own(out, "{", 1);
    for (size_t k = 0; k < first->n_columns; k++) {
        scatter_own(out, ",\"" + !k, 2 - !k);
        scatter_own(out, first->columns[k].name, strlen(first->columns[k].name));
        scatter_own(out, "\":[", 3);
        join_column(results, n, k, out);
        scatter_own(out, "]", 1);
    }
    scatter_own(out, "}", 1);
}

static struct safetensors_tensor *joined_tensors(const struct batch *first, size_t rows, struct arena *a)
{
    struct safetensors_tensor *tensors = arena_array(a, first->doc.n_tensors, sizeof *tensors);
    for (size_t i = 0; i < first->doc.n_tensors; i++) {
        tensors[i] = first->doc.tensors[i];
        uint64_t *shape = arena_memdup(a, tensors[i].shape, tensors[i].n_dims * sizeof *shape);
        shape[0] = rows;
        tensors[i].shape = shape;
    }
    safetensors_sort(tensors, first->doc.n_tensors);
    return tensors;
}

static int join_tensors(const struct batch_result *results, size_t n, struct arena *a, struct scatter *out,
                        struct err *err)
{
    size_t rows = 0, n_tensors = results[0].batch->doc.n_tensors, n_meta;
    struct safetensors_meta *meta;
    int r = batch_join_meta(results, n, a, &meta, &n_meta, err);
    if (r < 0)
        return r;
    if (safetensors_meta_get(&results[0].batch->doc, BATCH_COLUMNS)) {
        struct scatter text;
        scatter_init(&text);
        join_columns(results, n, &text);
        meta[n_meta++] = (struct safetensors_meta){BATCH_COLUMNS, arena_strndup(a, buf_str(&text.own), text.own.len)};
        scatter_done(&text);
    }
    for (size_t i = 0; i < n; i++)
        rows += rows_of(&results[i]);
    struct safetensors_tensor *tensors = joined_tensors(results[0].batch, rows, a);
    r = safetensors_write_head(out, tensors, n_tensors, meta, n_meta, err);
    for (size_t k = 0; k < n_tensors && r == 0; k++)
        for (size_t i = 0; i < n; i++) {
            const struct batch *b = results[i].batch;
            const struct safetensors_tensor *t = safetensors_find(&b->doc, tensors[k].name);
            scatter_add(out, (uint32_t)i, t->offset, b->rows ? t->len / b->rows * rows_of(&results[i]) : 0);
        }
    return r;
}

int batch_join(const struct batch_result *results, size_t n, size_t given, struct arena *a, struct scatter *out,
               struct err *err)
{
    if (!n)
        return err_set(err, ERR_INVALID, "there are no results to join");
    int r = check_all(results, n, err);
    if (r == 0)
        r = check_padding(results, n, given, err);
    if (r < 0)
        return r;
    if (!results[0].batch->json)
        return join_tensors(results, n, a, out, err);
    join_columns(results, n, out);
    return 0;
}
