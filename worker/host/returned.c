// SPDX-License-Identifier: Apache-2.0
#include "worker/host/returned.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch.h"

#include <stdlib.h>
#include <string.h>

struct value { // the values of one tensor
    struct safetensors_tensor tensor;
    void *data;
    size_t order;
};

struct returned {
    struct arena memory; // names and shapes
    struct value *values;
    size_t n, size, bytes;
    struct json_writer columns, meta;
    struct buf names; // of columns and metadata: "c" or "m", then the name, each with NUL
};

static struct returned *get(struct returned **at)
{
    if (!*at) {
        struct returned *r = *at = xcalloc(1, sizeof *r);
        r->names = BUF_INIT(SAFETENSORS_HEAD_MAX);
        r->columns = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
        r->meta = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
        writer_object(&r->columns, NULL);
        writer_object(&r->meta, NULL);
    }
    return *at;
}

void returned_free(struct returned *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->values[i].data);
    free(r->values);
    writer_done(&r->columns);
    writer_done(&r->meta);
    buf_done(&r->names);
    arena_done(&r->memory);
    free(r);
}

// Describes everything except the values.
static int describe(const cadre_tensor *t, struct safetensors_tensor *ret, size_t *ret_len, struct err *err)
{
    if (str_empty(t->name) || !t->n_dims || !t->shape)
        return err_set(err, ERR_INVALID, "a tensor needs a name and a shape of at least one dimension, the row");
    *ret = (struct safetensors_tensor){.name = t->name, .shape = t->shape, .n_dims = t->n_dims};
    if (!safetensors_dtype_find(t->dtype, &ret->dtype))
        return err_set(err, ERR_INVALID, "tensor '%.64s' has dtype %.32s, which safetensors does not have", t->name,
                       t->dtype ? t->dtype : "NULL");
    return safetensors_size(ret, ret_len, err);
}

static int check(const struct returned *r, const cadre_tensor *t, size_t max, struct value *ret, struct err *err)
{
    size_t len = 0;
    int code = describe(t, &ret->tensor, &len, err);
    if (code < 0)
        return code;
    if (len != t->len || (len && !t->data))
        return err_set(err, ERR_INVALID, "tensor '%.64s' has %zu bytes of data, its shape and dtype need %zu", t->name,
                       t->data ? t->len : 0, len);
    if (len > max - r->bytes)
        return err_set(err, ERR_LIMIT, "results of more than %zu bytes", max);
    return 0;
}

int returned_tensor(struct returned **at, const cadre_tensor *t, size_t max, struct err *err)
{
    struct returned *r = get(at);
    struct value v = {.order = r->n};
    int code = check(r, t, max, &v, err);
    if (code < 0)
        return code;
    MEM_GROW(r->values, r->n, r->size);
    v.tensor.name = arena_strdup(&r->memory, t->name);
    v.tensor.shape = arena_memdup(&r->memory, t->shape, t->n_dims * sizeof *t->shape);
    v.tensor.len = t->len;
    v.data = xmalloc(t->len);
    if (t->len)
        memcpy(v.data, t->data, t->len);
    r->values[r->n++] = v;
    r->bytes += t->len;
    return 0;
}

static int add(struct returned *r, char kind, struct json_writer *w, const char *name, const char *json, size_t len,
               struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    if (str_empty(name))
        return err_set(err, ERR_INVALID, "a column, or metadata, needs a name");
    for (size_t i = 0; i < r->names.len; i += strlen(r->names.data + i) + 1)
        if (r->names.data[i] == kind && str_eq(r->names.data + i + 1, name))
            return err_set(err, ERR_INVALID, "'%.64s' is returned twice", name);
    int code = json_parse_values(json, len, 0, &a, &root, err);
    if (code == 0 && kind == 'c' && root->type != JSON_LIST)
        code = err_set(err, ERR_INVALID, "a column is a list with one value per row, not a JSON %s",
                       json_type_name(root->type));
    if (code < 0)
        return err_wrap(err, "'%.64s'", name);
    buf_putc(&r->names, kind);
    buf_append(&r->names, name, strlen(name) + 1);
    writer_raw(w, name, json, len);
    return 0;
}

int returned_column(struct returned **at, const char *name, const char *json, size_t len, struct err *err)
{
    struct returned *r = get(at);
    return add(r, 'c', &r->columns, name, json, len, err);
}

int returned_meta(struct returned **at, const char *name, const char *json, size_t len, struct err *err)
{
    struct returned *r = get(at);
    return add(r, 'm', &r->meta, name, json, len, err);
}

// Sorts the widest elements first, so each tensor is aligned.
static int by_width(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    unsigned wide = safetensors_dtype_bits(x->tensor.dtype), other = safetensors_dtype_bits(y->tensor.dtype);
    if (wide != other)
        return wide > other ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

// Returns the text of a writer's object as if it were closed. The writer may still add members.
static const char *closed(const struct json_writer *w, struct arena *a)
{
    return arena_printf(a, "%s}", buf_str(&w->buf));
}

static int write_head(const struct returned *r, const struct value *sorted, struct arena *a, struct scatter *out,
                      struct err *err)
{
    struct safetensors_tensor *tensors = arena_array(a, r->n, sizeof *tensors);
    struct safetensors_meta metas[2];
    for (size_t i = 0; i < r->n; i++)
        tensors[i] = sorted[i].tensor;
    const char *columns = r->columns.buf.len > 1 ? closed(&r->columns, a) : NULL;
    const char *meta = r->meta.buf.len > 1 ? closed(&r->meta, a) : NULL;
    if (r->columns.buf.over || r->meta.buf.over || r->names.over)
        return err_set(err, ERR_LIMIT, "columns and metadata of more than %zu bytes", SAFETENSORS_HEAD_MAX);
    return safetensors_write_head(out, tensors, r->n, metas, batch_metadata(columns, meta, metas), err);
}

static void put(char *out, const struct value *sorted, size_t n, const struct buf *head)
{
    memcpy(out, head->data, head->len);
    out += head->len;
    for (size_t i = 0; i < n; i++) {
        if (sorted[i].tensor.len)
            memcpy(out, sorted[i].data, sorted[i].tensor.len);
        out += sorted[i].tensor.len;
    }
}

int returned_write(const struct returned *r, returned_place_fn place, void *ctx, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(scatter_done) struct scatter head = SCATTER_INIT;
    struct batch read;
    struct value *sorted = arena_array(&a, r->n, sizeof *sorted);
    if (r->n) {
        memcpy(sorted, r->values, r->n * sizeof *sorted);
        qsort(sorted, r->n, sizeof *sorted, by_width);
    }
    int code = write_head(r, sorted, &a, &head, err);
    size_t len = head.own.len + r->bytes;
    char *out = code == 0 ? place(ctx, len) : NULL;
    if (code == 0 && !out)
        code = err_set(err, ERR_LIMIT, "%zu bytes are too many", len);
    if (code == 0) {
        put(out, sorted, r->n, &head.own);
        code = batch_read(out, len, &a, &read, err);
    }
    return code;
}

// A document without values

static int blank_head(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                      struct safetensors_tensor *sorted, struct scatter *out, struct err *err)
{
    struct safetensors_meta metas[2];
    size_t len;
    for (size_t i = 0; i < n; i++)
        if (describe(&tensors[i], &sorted[i], &len, err) < 0)
            return err->code;
    safetensors_sort(sorted, n);
    return safetensors_write_head(out, sorted, n, metas, batch_metadata(columns, meta, metas), err);
}

// Computes the offsets behind the head. Returns the length of all values together.
static size_t tell_places(const cadre_tensor *tensors, size_t n, const struct safetensors_tensor *sorted, size_t *ret)
{
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n; i++)
            if (str_eq(tensors[i].name, sorted[k].name))
                ret[i] = at;
        at += sorted[k].len;
    }
    return at;
}

static int write_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta, bool with_values,
                       returned_place_fn place, void *ctx, char **ret_values, size_t *ret_offsets, size_t *ret_len,
                       struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct safetensors_tensor *sorted = arena_array(&a, n, sizeof *sorted);
    struct batch read;
    _cleanup_(scatter_done) struct scatter head = SCATTER_INIT;
    int code = blank_head(tensors, n, columns, meta, sorted, &head, err);
    *ret_len = code == 0 ? tell_places(tensors, n, sorted, ret_offsets) : 0;
    size_t len = head.own.len + (with_values ? *ret_len : 0);
    char *out = code == 0 ? place(ctx, len) : NULL;
    if (code == 0 && !out)
        code = err_set(err, ERR_LIMIT, "%zu bytes are too many", len);
    if (code == 0) {
        memcpy(out, head.own.data, head.own.len);
        *ret_values = out + head.own.len;
        code = batch_read_head(out, len, &a, &read, err);
    }
    return code;
}

int returned_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                   returned_place_fn place, void *ctx, void **ret_data, struct err *err)
{
    _cleanup_(free_p) size_t *offsets = xcalloc(n, sizeof *offsets);
    char *values;
    size_t len;
    int code = write_blank(tensors, n, columns, meta, true, place, ctx, &values, offsets, &len, err);
    for (size_t i = 0; code == 0 && i < n; i++)
        ret_data[i] = values + offsets[i];
    return code;
}

int returned_head(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta, returned_place_fn place,
                  void *ctx, size_t *ret_offsets, size_t *ret_len, struct err *err)
{
    char *ignored;
    return write_blank(tensors, n, columns, meta, false, place, ctx, &ignored, ret_offsets, ret_len, err);
}

size_t returned_len(const cadre_tensor *t)
{
    struct safetensors_tensor described;
    struct err ignored = ERR_INIT;
    size_t len = 0;
    (void)describe(t, &described, &len, &ignored);
    return len;
}
