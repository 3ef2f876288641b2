// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_join.h"

#include "common/base/fiber.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

// Metadata. Peers choose the names, so they are brought together by sorting, not hashing.

enum { COMPARE_UNITS = 32 }; // cost of a comparison, besides the bytes
enum { METRICS_DEPTH = 3 };  // the object, a list of metrics, one of them: deeper values are compared as text

struct join_entry {
    const char *key;
    size_t key_len;
    const char *value;
    size_t len;
    uint32_t rank;
    size_t order;  // as they came
    size_t values; // how many entries have that key, from this one on: set in the first of them, otherwise 0
};

struct join_entries {
    struct join_entry *list;
    size_t n, size;
};

static void entries_add(struct join_entries *e, struct join_entry entry)
{
    MEM_GROW(e->list, e->n, e->size);
    entry.order = e->n;
    e->list[e->n++] = entry;
}

static bool same_key(const struct join_entry *a, const struct join_entry *b)
{
    return a->key_len == b->key_len && fiber_equal(a->key, b->key, a->key_len);
}

static bool same_value(const struct join_entry *a, const struct join_entry *b)
{
    return a->len == b->len && fiber_equal(a->value, b->value, a->len);
}

static int by_key(const void *a, const void *b)
{
    const struct join_entry *x = a, *y = b;
    fiber_spend(COMPARE_UNITS + MIN(x->key_len, y->key_len));
    int c = memcmp(x->key, y->key, MIN(x->key_len, y->key_len));
    if (c)
        return c;
    if (x->key_len != y->key_len)
        return x->key_len < y->key_len ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
    const struct join_entry *x = *(const struct join_entry *const *)a, *y = *(const struct join_entry *const *)b;
    fiber_spend(COMPARE_UNITS);
    return x->order < y->order ? -1 : 1;
}

// Brings entries with the same name together. Returns the first entry of each name, in the order in which the names
// came.
static const struct join_entry **entries_by_name(struct join_entries *e, struct arena *a, size_t *ret_n)
{
    const struct join_entry **first = arena_array(a, e->n, sizeof(struct join_entry *));
    size_t n = 0;
    if (e->n)
        qsort(e->list, e->n, sizeof *e->list, by_key);
    for (size_t i = 0, k; i < e->n; i = k) {
        for (k = i + 1; k < e->n && same_key(&e->list[i], &e->list[k]); k++)
            ;
        e->list[i].values = k - i;
        first[n++] = &e->list[i];
    }
    qsort(first, n, sizeof *first, by_first);
    *ret_n = n;
    return first;
}

static int check_equal(const struct join_entry *first, const char *where, struct err *err)
{
    for (size_t i = 1; i < first->values; i++)
        if (!same_value(&first[0], &first[i]))
            return err_set(err, ERR_INVALID,
                           "the results do not fit together: '%.*s' of %s is %.*s of rank %u, but %.*s of rank %u",
                           (int)MIN(first->key_len, (size_t)64), first->key, where, (int)MIN(first->len, (size_t)64),
                           first->value, first->rank, (int)MIN(first[i].len, (size_t)64), first[i].value,
                           first[i].rank);
    return 0;
}

static int add_metrics(struct join_entries *e, const struct json *v, uint32_t rank, struct err *err)
{
    if (v->type == JSON_NULL)
        return 0;
    if (v->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "`metrics` of rank %u is a JSON %s instead of an object or a list of objects",
                       rank, json_type_name(v->type));
    JSON_FOREACH(m, v)
        entries_add(e, (struct join_entry){
                           .key = m->key, .key_len = m->key_len, .value = m->text, .len = m->len, .rank = rank});
    return 0;
}

static int add_members(struct join_entries *members, struct join_entries *metrics, const char *text, uint32_t rank,
                       struct arena *a, struct err *err)
{
    struct json *root;
    int r = json_parse_values(text, fiber_strlen(text), METRICS_DEPTH, a, &root, err);
    if (r < 0)
        return err_wrap(err, "%s of rank %u", BATCH_META, rank);
    JSON_FOREACH(m, root) {
        if (!json_key_is(m, "metrics")) {
            entries_add(members, (struct join_entry){m->key, m->key_len, m->text, m->len, rank, 0, 0});
        } else if (m->type == JSON_LIST) {
            JSON_FOREACH(item, m)
                if ((r = add_metrics(metrics, item, rank, err)) < 0)
                    return r;
        } else if ((r = add_metrics(metrics, m, rank, err)) < 0) {
            return r;
        }
    }
    return 0;
}

static void write_metrics(struct json_writer *w, struct join_entries *metrics, struct arena *a)
{
    size_t n;
    const struct join_entry **names = entries_by_name(metrics, a, &n);
    writer_object(w, "metrics");
    for (size_t i = 0; i < n; i++) {
        writer_key(w, names[i]->key, names[i]->key_len);
        writer_list(w, NULL);
        for (size_t k = 0; k < names[i]->values; k++)
            writer_raw(w, NULL, names[i][k].value, names[i][k].len);
        writer_list_end(w);
    }
    writer_object_end(w);
}

static int write_members(struct json_writer *w, struct join_entries *members, struct join_entries *metrics,
                         struct arena *a, struct err *err)
{
    size_t n;
    const struct join_entry **names = entries_by_name(members, a, &n);
    int r = 0;
    writer_object(w, NULL);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = check_equal(names[i], BATCH_META, err);
        writer_key(w, names[i]->key, names[i]->key_len);
        writer_raw(w, NULL, names[i]->value, names[i]->len);
    }
    if (metrics->n)
        write_metrics(w, metrics, a);
    writer_object_end(w);
    return r;
}

static int join_objects(const struct batch_result *results, size_t n, struct arena *a, const char **ret,
                        struct err *err)
{
    struct join_entries members = {0}, metrics = {0};
    struct json_writer w = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
    int r = 0;
    bool any = false;
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *text = safetensors_meta_get(&results[i].batch->doc, BATCH_META);
        any = any || text;
        r = text ? add_members(&members, &metrics, text, results[i].rank, a, err) : 0;
    }
    if (r == 0)
        r = write_members(&w, &members, &metrics, a, err);
    *ret = any && r == 0 ? arena_strndup(a, buf_str(&w.buf), w.buf.len) : NULL;
    if (r == 0 && w.buf.over)
        r = err_set(err, ERR_LIMIT, "%s of all results is more than %zu bytes", BATCH_META, SAFETENSORS_HEAD_MAX);
    writer_done(&w);
    free(members.list);
    free(metrics.list);
    return r;
}

static int join_meta(const struct batch_result *results, size_t n, struct arena *a, struct safetensors_meta **ret,
                     size_t *ret_n, struct err *err)
{
    struct join_entries e = {0};
    const char *object;
    size_t names;
    for (size_t i = 0; i < n; i++) {
        const struct safetensors *doc = &results[i].batch->doc;
        for (size_t k = 0; k < doc->n_meta; k++) {
            const struct safetensors_meta *m = &doc->meta[k];
            if (!str_eq(m->key, BATCH_META) && !str_eq(m->key, BATCH_COLUMNS))
                entries_add(&e, (struct join_entry){m->key, strlen(m->key), m->value, fiber_strlen(m->value),
                                                    results[i].rank, 0, 0});
        }
    }
    const struct join_entry **first = entries_by_name(&e, a, &names);
    struct safetensors_meta *meta = arena_array(a, names + 2, sizeof *meta); // and BATCH_META and BATCH_COLUMNS
    int r = join_objects(results, n, a, &object, err);
    *ret_n = 0;
    for (size_t i = 0; i < names && r == 0; i++) {
        r = check_equal(first[i], "__metadata__", err);
        meta[(*ret_n)++] = (struct safetensors_meta){first[i]->key, first[i]->value};
    }
    if (r == 0 && object)
        meta[(*ret_n)++] = (struct safetensors_meta){BATCH_META, object};
    free(e.list);
    *ret = meta;
    return r;
}

// Rows.

static int check_padding(const struct batch_result *results, size_t n, size_t given, struct err *err)
{
    for (size_t i = 0; i < n && given; i++)
        if (results[i].batch->rows != given)
            return err_set(err, ERR_INVALID,
                           "rank %u got %zu rows and returned %zu, so the proxy cannot find the padding; a method that "
                           "is called with padding must return one row per row",
                           results[i].rank, given, results[i].batch->rows);
    return 0;
}

static size_t rows_of(const struct batch_result *result)
{
    return result->batch->rows - result->padding;
}

static void describe(const struct safetensors_tensor *t, char *out, size_t size)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(size - 1);
    buf_printf(&text, "%s [", safetensors_dtype_name(t->dtype));
    for (size_t i = 0; i < t->n_dims && !text.over; i++)
        buf_printf(&text, "%s%llu", i ? "," : "", (unsigned long long)t->shape[i]);
    buf_puts(&text, "]");
    memcpy(out, buf_str(&text), text.len + 1);
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
        scatter_own(out, ",", comma);
        comma = true;
        batch_add_cells(c, 0, rows, (uint32_t)i, out);
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

static int join_tensors(const struct batch_result *results, size_t n, struct arena *a, struct scatter *out,
                        struct err *err)
{
    size_t rows = 0, n_tensors = results[0].batch->doc.n_tensors, n_meta;
    struct safetensors_meta *meta;
    int r = join_meta(results, n, a, &meta, &n_meta, err);
    if (r < 0)
        return r;
    if (safetensors_meta_get(&results[0].batch->doc, BATCH_COLUMNS)) {
        _cleanup_(scatter_done) struct scatter text = SCATTER_INIT;
        join_columns(results, n, &text);
        meta[n_meta++] = (struct safetensors_meta){BATCH_COLUMNS, arena_strndup(a, buf_str(&text.own), text.own.len)};
    }
    for (size_t i = 0; i < n; i++)
        rows += rows_of(&results[i]);
    struct safetensors_tensor *tensors = batch_tensors(results[0].batch, rows, a);
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
    if (check_all(results, n, err) < 0 || batch_check_parts(results[0].batch, n, err) < 0 ||
        check_padding(results, n, given, err) < 0)
        return err->code;
    if (!results[0].batch->json)
        return join_tensors(results, n, a, out, err);
    join_columns(results, n, out);
    return 0;
}
