// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

bool batch_is_safetensors(const char *data, size_t len)
{
    return len >= SAFETENSORS_PREFIX && !data[4] && !data[5] && !data[6] && !data[7];
}

static int no_json(const struct json_scan *s, const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "not valid JSON at byte %zu", (size_t)(s->p - text));
}

// `text` is what offsets of cells count from.
static int read_column(const struct json_item *member, const char *text, size_t max, struct arena *a,
                       struct batch_column *ret, struct err *err)
{
    struct batch_cell *cells = NULL;
    struct json_scan s;
    struct json_item item;
    size_t size = 0;
    int got = 0;
    ret->name = arena_strndup(a, member->key, member->key_len);
    if (memchr(member->key, '\0', member->key_len))
        return err_set(err, ERR_INVALID, "not valid JSON: the name of a column has a byte 0");
    if (!json_scan_begin(&s, member->text, member->len) || s.close != ']')
        return err_set(err, ERR_INVALID,
                       "'%.64s' is not a list; in a batch everything is a list with one value per row", ret->name);
    while (ret->n <= max && (got = json_scan_next(&s, &item)) > 0) {
        uint32_t begin = (uint32_t)(item.text - text);
        if (ret->n == size) {
            size = MAX(size * 2, (size_t)16);
            cells = xrealloc(cells, size, sizeof *cells);
        }
        cells[ret->n++] = (struct batch_cell){begin, begin + (uint32_t)item.len};
    }
    ret->cells = cells ? arena_memdup(a, cells, ret->n * sizeof *cells) : NULL;
    free(cells);
    if (ret->n > max)
        return err_set(err, ERR_LIMIT, "more than %zu values in columns; send so many values as a tensor",
                       BATCH_CELLS_MAX);
    return got < 0 ? no_json(&s, text, err) : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct batch_column *const *)a)->name, (*(const struct batch_column *const *)b)->name);
}

static int check_names(struct batch *b, struct arena *a, struct err *err)
{
    const struct batch_column **sorted = arena_array(a, b->n_columns, sizeof *sorted);
    for (size_t i = 0; i < b->n_columns; i++)
        sorted[i] = &b->columns[i];
    qsort(sorted, b->n_columns, sizeof *sorted, by_name);
    for (size_t i = 1; i < b->n_columns; i++)
        if (str_eq(sorted[i - 1]->name, sorted[i]->name))
            return err_set(err, ERR_INVALID, "there are two columns '%.64s'", sorted[i]->name);
    b->by_name = sorted;
    return 0;
}

size_t batch_metadata(const char *columns, const char *meta, struct safetensors_meta ret[2])
{
    size_t n = 0;
    if (columns)
        ret[n++] = (struct safetensors_meta){BATCH_COLUMNS, columns};
    if (meta)
        ret[n++] = (struct safetensors_meta){BATCH_META, meta};
    return n;
}

const struct batch_column *batch_column(const struct batch *b, const char *name)
{
    const struct batch_column key = {.name = name}, *at = &key;
    const struct batch_column **found =
        b->n_columns ? bsearch(&at, b->by_name, b->n_columns, sizeof *b->by_name, by_name) : NULL;
    return found ? *found : NULL;
}

static int read_columns(const char *text, size_t len, struct arena *a, struct batch *b, struct err *err)
{
    struct json_scan s, again;
    struct json_item item;
    size_t n = 0;
    int got, r = 0;
    if (len > UINT32_MAX)
        return err_set(err, ERR_LIMIT, "JSON of %zu bytes; a batch has at most %u of it", len, UINT32_MAX);
    if (!json_scan_begin(&s, text, len) || s.close != '}')
        return err_set(err, ERR_INVALID,
                       "this is not a batch: neither a safetensors document nor a JSON object of lists");
    again = s;
    while ((got = json_scan_next(&s, &item)) > 0)
        n++;
    if (got < 0)
        return no_json(&s, text, err);
    b->columns = arena_array(a, n, sizeof *b->columns);
    while (r == 0 && json_scan_next(&again, &item) > 0) {
        struct batch_column *c = &b->columns[b->n_columns++];
        r = read_column(&item, text, BATCH_CELLS_MAX - b->n_cells, a, c, err);
        b->n_cells += c->n;
    }
    return r < 0 ? r : check_names(b, a, err);
}

static int same_rows(struct batch *b, const char **first, const char *name, size_t rows, struct err *err)
{
    if (!*first) {
        *first = name;
        b->rows = rows;
    }
    if (b->rows != rows)
        return err_set(err, ERR_INVALID,
                       "'%.64s' has %zu rows, but '%.64s' has %zu; all of a batch has the same number", name, rows,
                       *first, b->rows);
    return 0;
}

static int check_rows(struct batch *b, struct err *err)
{
    const char *first = NULL;
    int r = 0;
    for (size_t i = 0; i < b->doc.n_tensors && r == 0; i++) {
        const struct safetensors_tensor *t = &b->doc.tensors[i];
        if (!t->n_dims)
            return err_set(err, ERR_INVALID,
                           "tensor '%.64s' is a single number; in a batch the first dimension of a tensor is the row",
                           t->name);
        r = same_rows(b, &first, t->name, t->shape[0], err);
        if (r == 0 && b->rows && t->len % b->rows)
            return err_set(err, ERR_INVALID, "tensor '%.64s' cannot be split: its rows of %s do not end at whole bytes",
                           t->name, safetensors_dtype_name(t->dtype));
    }
    for (size_t i = 0; i < b->n_columns && r == 0; i++)
        r = same_rows(b, &first, b->columns[i].name, b->columns[i].n, err);
    return r;
}

static int check_meta(const struct safetensors *doc, struct err *err)
{
    struct json_scan s;
    const char *text = safetensors_meta_get(doc, BATCH_META);
    size_t len = text ? strlen(text) : 0;
    if (!text || (json_scan_begin(&s, text, len) && s.close == '}' && json_scan_one(text, len)))
        return 0;
    return err_set(err, ERR_INVALID, "%s must be a JSON object, but is: %.64s", BATCH_META, text);
}

static int read_tensors(const char *data, size_t len, bool whole, struct arena *a, struct batch *b, struct err *err)
{
    int r = whole ? safetensors_read(data, len, a, &b->doc, err) : safetensors_read_head(data, len, a, &b->doc, err);
    if (r == 0 && safetensors_meta_get(&b->doc, BATCH_OBJECT))
        r = err_set(err, ERR_INVALID,
                    "a pickled object of Python: only workers in Python read it, and it has no rows to cut or to join; "
                    "send JSON or a batch");
    if (r == 0)
        r = check_meta(&b->doc, err);
    const char *columns = r < 0 ? NULL : safetensors_meta_get(&b->doc, BATCH_COLUMNS);
    if (!columns)
        return r;
    r = read_columns(columns, strlen(columns), a, b, err);
    for (size_t i = 0; i < b->n_columns; i++)
        b->columns[i].text = columns;
    return r < 0 ? err_wrap(err, "%s", BATCH_COLUMNS) : 0;
}

int batch_read(const char *data, size_t len, struct arena *a, struct batch *ret, struct err *err)
{
    *ret = (struct batch){.json = !batch_is_safetensors(data, len)};
    int r = ret->json ? read_columns(data, len, a, ret, err) : read_tensors(data, len, true, a, ret, err);
    return r < 0 ? r : check_rows(ret, err);
}

int batch_read_head(const char *data, size_t len, struct arena *a, struct batch *ret, struct err *err)
{
    *ret = (struct batch){0};
    int r = read_tensors(data, len, false, a, ret, err);
    return r < 0 ? r : check_rows(ret, err);
}

bool batch_in_order(const struct batch *b)
{
    for (size_t i = 1; i < b->doc.n_tensors; i++)
        if (safetensors_dtype_bits(b->doc.tensors[i].dtype) > safetensors_dtype_bits(b->doc.tensors[i - 1].dtype))
            return false;
    return true;
}

int batch_pieces(size_t rows, size_t n, bool pad, size_t *ret_each, size_t *ret_added, struct err *err)
{
    size_t rest = rows % n;
    if (rest && !pad)
        return err_set(err, ERR_INVALID,
                       "a batch of %zu rows cannot be cut into %zu equal pieces: send a multiple, or ask for padding",
                       rows, n);
    *ret_added = rest ? n - rest : 0;
    *ret_each = rows / n + !!rest;
    return 0;
}

size_t batch_padding(size_t rows, size_t each, size_t piece)
{
    size_t end = (piece + 1) * each;
    return end > rows ? MIN(end - rows, each) : 0;
}

// How many of the rows are there, and from where; the others are the last one again.
struct range {
    size_t from, n, again;
};

static struct range range_of(const struct batch *b, size_t from, size_t rows)
{
    size_t there = from < b->rows ? MIN(rows, b->rows - from) : 0;
    return (struct range){from, there, rows - there};
}

static void add_tensor(const struct batch *b, const struct safetensors_tensor *t, const struct range *range,
                       struct scatter *out)
{
    size_t row = b->rows ? t->len / b->rows : 0;
    scatter_add(out, 0, t->offset + range->from * row, range->n * row);
    for (size_t i = 0; i < range->again; i++)
        scatter_add(out, 0, t->offset + (b->rows - 1) * row, row);
}

static void add_cells(struct scatter *out, const struct batch_column *c, size_t from, size_t n)
{
    if (!n)
        return;
    size_t begin = c->cells[from].begin, len = c->cells[from + n - 1].end - begin;
    if (c->text)
        scatter_own(out, c->text + begin, len);
    else
        scatter_add(out, 0, begin, len);
}

static void add_columns(const struct batch *b, const struct range *range, struct scatter *out)
{
    scatter_own(out, "{", 1);
    for (size_t i = 0; i < b->n_columns; i++) {
        const struct batch_column *c = &b->columns[i];
        scatter_own(out, ",\"" + !i, 2 - !i);
        scatter_own(out, c->name, strlen(c->name));
        scatter_own(out, "\":[", 3);
        add_cells(out, c, range->from, range->n);
        for (size_t k = 0; k < range->again; k++) {
            scatter_own(out, ",", k || range->n);
            add_cells(out, c, b->rows - 1, 1);
        }
        scatter_own(out, "]", 1);
    }
    scatter_own(out, "}", 1);
}

// The metadata of a piece: all of the batch's, with the columns cut.
static struct safetensors_meta *cut_meta(const struct batch *b, const struct range *range, struct arena *a)
{
    struct safetensors_meta *meta = arena_array(a, b->doc.n_meta, sizeof *meta);
    for (size_t i = 0; i < b->doc.n_meta; i++) {
        meta[i] = b->doc.meta[i];
        if (str_eq(meta[i].key, BATCH_COLUMNS)) {
            struct scatter text;
            scatter_init(&text);
            add_columns(b, range, &text);
            meta[i].value = arena_strndup(a, buf_str(&text.own), text.own.len);
            scatter_done(&text);
        }
    }
    return meta;
}

static int cut_tensors(const struct batch *b, const struct range *range, struct arena *a, struct scatter *out,
                       struct err *err)
{
    size_t n = b->doc.n_tensors;
    struct safetensors_tensor *tensors = arena_array(a, n, sizeof *tensors);
    for (size_t i = 0; i < n; i++) {
        tensors[i] = b->doc.tensors[i];
        uint64_t *shape = arena_memdup(a, tensors[i].shape, tensors[i].n_dims * sizeof *shape);
        shape[0] = range->n + range->again;
        tensors[i].shape = shape;
    }
    safetensors_sort(tensors, n);
    int r = safetensors_write_head(out, tensors, n, cut_meta(b, range, a), b->doc.n_meta, err);
    for (size_t i = 0; i < n && r == 0; i++)
        add_tensor(b, safetensors_find(&b->doc, tensors[i].name), range, out);
    return r;
}

int batch_slice(const struct batch *b, size_t from, size_t rows, struct arena *a, struct scatter *out, struct err *err)
{
    const struct range range = range_of(b, from, rows);
    if (range.again && !b->rows)
        return err_set(err, ERR_INVALID, "a batch without rows cannot be padded");
    if (!b->json)
        return cut_tensors(b, &range, a, out, err);
    add_columns(b, &range, out);
    return 0;
}
