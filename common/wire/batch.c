// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

enum { COMPARE_UNITS = 32 }; // that a comparison of names costs

bool batch_is_safetensors(const char *data, size_t len)
{
    return len >= SAFETENSORS_PREFIX && !data[4] && !data[5] && !data[6] && !data[7];
}

static int no_json(const struct json_scan *s, const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "not valid JSON at byte %zu", (size_t)(s->p - text));
}

// Room for one cell more. Long columns grow block by block: nothing long is moved.
static void grow(struct batch_column *c, struct arena *a)
{
    enum { FIRST = 16 };
    if (c->n % BATCH_BLOCK == 0) {
        size_t n = c->n_blocks;
        if ((n & (n - 1)) == 0) { // 0 and powers of two
            struct batch_cell **blocks = arena_array(a, MAX(2 * n, (size_t)1), sizeof *blocks);
            fiber_copy(blocks, c->blocks, n * sizeof *blocks);
            c->blocks = blocks;
        }
        c->room = n ? BATCH_BLOCK : FIRST;
        c->blocks[c->n_blocks++] = arena_array(a, c->room, sizeof(struct batch_cell));
    } else if (c->n % BATCH_BLOCK == c->room) {
        struct batch_cell **last = &c->blocks[c->n_blocks - 1], *cells = arena_array(a, 2 * c->room, sizeof *cells);
        memcpy(cells, *last, c->room * sizeof *cells);
        *last = cells;
        c->room *= 2;
    }
}

// `text` is what offsets of cells count from.
static int read_column(const struct json_item *member, const char *text, size_t max, struct arena *a,
                       struct batch_column *ret, struct err *err)
{
    struct json_scan s;
    struct json_item item;
    int got = 0;
    if (member->key_len > BATCH_NAME_MAX)
        return err_set(err, ERR_LIMIT, "the name of a column has %zu bytes; at most %zu", member->key_len,
                       BATCH_NAME_MAX);
    ret->name = arena_strndup(a, member->key, member->key_len);
    if (memchr(member->key, '\0', member->key_len))
        return err_set(err, ERR_INVALID, "not valid JSON: the name of a column has a byte 0");
    if (!json_scan_begin(&s, member->text, member->len) || s.close != ']')
        return err_set(err, ERR_INVALID,
                       "'%.64s' is not a list; in a batch everything is a list with one value per row", ret->name);
    while (ret->n <= max && (got = json_scan_next(&s, &item)) > 0) {
        uint32_t begin = (uint32_t)(item.text - text);
        grow(ret, a);
        ret->blocks[ret->n / BATCH_BLOCK][ret->n % BATCH_BLOCK] =
            (struct batch_cell){begin, begin + (uint32_t)item.len};
        ret->n++;
    }
    if (ret->n > max)
        return err_set(err, ERR_LIMIT, "more than %zu values in columns; send so many values as a tensor",
                       BATCH_CELLS_MAX);
    return got < 0 ? no_json(&s, text, err) : 0;
}

static int by_name(const void *a, const void *b)
{
    fiber_spend(COMPARE_UNITS);
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
    size_t len = text ? fiber_strlen(text) : 0;
    if (!text || (json_scan_begin(&s, text, len) && s.close == '}' && json_scan_one(text, len)))
        return 0;
    return err_set(err, ERR_INVALID, "%s must be a JSON object, but is: %.64s", BATCH_META, text);
}

static int read_tensors(const char *data, size_t len, bool whole, struct arena *a, struct batch *b, struct err *err)
{
    int r = whole ? safetensors_read(data, len, a, &b->doc, err) : safetensors_read_head(data, len, a, &b->doc, err);
    if (r == 0 && safetensors_meta_get(&b->doc, BATCH_OBJECT))
        r = err_set(err, ERR_INVALID,
                    "a pickled object of Python: only workers in Python read it, and it has no rows to split or join; "
                    "send JSON or a batch");
    if (r == 0)
        r = check_meta(&b->doc, err);
    const char *columns = r < 0 ? NULL : safetensors_meta_get(&b->doc, BATCH_COLUMNS);
    if (!columns)
        return r;
    r = read_columns(columns, fiber_strlen(columns), a, b, err);
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

int batch_check_parts(const struct batch *b, size_t n, struct err *err)
{
    size_t each = b->json ? b->n_columns : b->doc.n_tensors;
    return n * each <= BATCH_PARTS_MAX
               ? 0
               : err_set(err, ERR_LIMIT, "%zu batches of %zu %s each; all together may have at most %zu", n, each,
                         b->json ? "columns" : "tensors", BATCH_PARTS_MAX);
}

int batch_pieces(size_t rows, size_t n, bool pad, size_t *ret_each, size_t *ret_added, struct err *err)
{
    size_t rest = rows % n;
    if (rest && !pad)
        return err_set(err, ERR_INVALID,
                       "a batch of %zu rows cannot be split into %zu equal pieces: send a multiple, or ask for padding",
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

// How many of the rows exist, and where they begin. `again`: how often the last row is repeated.
struct row_range {
    size_t from, n, again;
};

static struct row_range range_of(const struct batch *b, size_t from, size_t rows)
{
    size_t there = from < b->rows ? MIN(rows, b->rows - from) : 0;
    return (struct row_range){from, there, rows - there};
}

static void add_tensor(const struct batch *b, const struct safetensors_tensor *t, const struct row_range *range,
                       struct scatter *out)
{
    size_t row = b->rows ? t->len / b->rows : 0;
    scatter_add(out, 0, t->offset + range->from * row, range->n * row);
    for (size_t i = 0; i < range->again; i++)
        scatter_add(out, 0, t->offset + (b->rows - 1) * row, row);
}

void batch_add_cells(const struct batch_column *c, size_t from, size_t n, uint32_t source, struct scatter *out)
{
    if (!n)
        return;
    size_t begin = batch_cell(c, from)->begin, len = batch_cell(c, from + n - 1)->end - begin;
    if (c->text)
        scatter_own(out, c->text + begin, len);
    else
        scatter_add(out, source, begin, len);
}

static void add_columns(const struct batch *b, const struct row_range *range, struct scatter *out)
{
    scatter_own(out, "{", 1);
    for (size_t i = 0; i < b->n_columns; i++) {
        const struct batch_column *c = &b->columns[i];
        scatter_own(out, ",\"" + !i, 2 - !i);
        scatter_own(out, c->name, strlen(c->name));
        scatter_own(out, "\":[", 3);
        batch_add_cells(c, range->from, range->n, 0, out);
        for (size_t k = 0; k < range->again; k++) {
            scatter_own(out, ",", k || range->n);
            batch_add_cells(c, b->rows - 1, 1, 0, out);
        }
        scatter_own(out, "]", 1);
    }
    scatter_own(out, "}", 1);
}

// Padding may repeat a long row, so it has its own limit.
static int split_columns(const struct batch *b, const struct row_range *range, struct arena *a, const char **ret,
                         struct err *err)
{
    _cleanup_(scatter_done) struct scatter text = SCATTER_INIT;
    text.own.cap = SAFETENSORS_HEAD_MAX;
    add_columns(b, range, &text);
    bool fits = !text.own.over;
    if (fits)
        *ret = arena_strndup(a, buf_str(&text.own), text.own.len);
    return fits ? 0
                : err_set(err, ERR_LIMIT, "the columns of a piece, with its padding, have more than %zu bytes",
                          SAFETENSORS_HEAD_MAX);
}

// Makes the metadata of a piece: the metadata of the batch, with the piece's part of the columns.
static int split_meta(const struct batch *b, const struct row_range *range, struct arena *a,
                      struct safetensors_meta **ret, struct err *err)
{
    struct safetensors_meta *meta = *ret = arena_array(a, b->doc.n_meta, sizeof *meta);
    int r = 0;
    for (size_t i = 0; i < b->doc.n_meta && r == 0; i++) {
        meta[i] = b->doc.meta[i];
        if (str_eq(meta[i].key, BATCH_COLUMNS))
            r = split_columns(b, range, a, &meta[i].value, err);
    }
    return r;
}

struct safetensors_tensor *batch_tensors(const struct batch *b, size_t rows, struct arena *a)
{
    struct safetensors_tensor *tensors = arena_array(a, b->doc.n_tensors, sizeof *tensors);
    for (size_t i = 0; i < b->doc.n_tensors; i++) {
        tensors[i] = b->doc.tensors[i];
        uint64_t *shape = arena_memdup(a, tensors[i].shape, tensors[i].n_dims * sizeof *shape);
        shape[0] = rows;
        tensors[i].shape = shape;
    }
    safetensors_sort(tensors, b->doc.n_tensors);
    return tensors;
}

static int split_tensors(const struct batch *b, const struct row_range *range, struct arena *a, struct scatter *out,
                         struct err *err)
{
    size_t n = b->doc.n_tensors;
    struct safetensors_meta *meta;
    if (split_meta(b, range, a, &meta, err) < 0)
        return err->code;
    struct safetensors_tensor *tensors = batch_tensors(b, range->n + range->again, a);
    int r = safetensors_write_head(out, tensors, n, meta, b->doc.n_meta, err);
    for (size_t i = 0; i < n && r == 0; i++)
        add_tensor(b, safetensors_find(&b->doc, tensors[i].name), range, out);
    return r;
}

int batch_slice(const struct batch *b, size_t from, size_t rows, struct arena *a, struct scatter *out, struct err *err)
{
    const struct row_range range = range_of(b, from, rows);
    if (range.again && !b->rows)
        return err_set(err, ERR_INVALID, "a batch without rows cannot be padded");
    if (!b->json)
        return split_tensors(b, &range, a, out, err);
    add_columns(b, &range, out);
    return 0;
}
