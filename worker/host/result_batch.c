// SPDX-License-Identifier: Apache-2.0
#include "worker/host/result_batch.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch_layout.h"

#include <stdlib.h>
#include <string.h>

struct value { // the values of one tensor
    struct safetensors_tensor tensor;
    void *data;
};

struct result_batch {
    struct arena memory; // names and shapes
    struct value *values;
    size_t n, size, bytes;
    struct json_writer columns, meta;
    struct buf names; // of columns and metadata: "c" or "m", then the name, each with NUL
};

static struct result_batch *get(struct result_batch **at)
{
    if (!*at) {
        struct result_batch *r = *at = xcalloc(1, sizeof *r);
        r->names = BUF_INIT(SAFETENSORS_HEAD_MAX);
        r->columns = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
        r->meta = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
        writer_object(&r->columns, NULL);
        writer_object(&r->meta, NULL);
    }
    return *at;
}

void result_batch_free(struct result_batch *r)
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

static int describe(const cadre_tensor *t, struct safetensors_tensor *ret, struct err *err)
{
    return batch_layout_tensor(t->name, t->dtype, t->shape, t->n_dims, ret, err);
}

int result_batch_tensor(struct result_batch **at, const cadre_tensor *t, size_t max, struct err *err)
{
    struct result_batch *r = get(at);
    struct value v = {0};
    int code = describe(t, &v.tensor, err);
    if (code == 0)
        code = batch_layout_check(&v.tensor, t->data, t->len, err);
    if (code == 0 && t->len > max - r->bytes)
        code = err_set(err, ERR_LIMIT, "results of more than %zu bytes", max);
    if (code < 0)
        return code;
    MEM_GROW(r->values, r->n, r->size);
    v.tensor.name = arena_strdup(&r->memory, t->name);
    v.tensor.shape = arena_memdup(&r->memory, t->shape, t->n_dims * sizeof *t->shape);
    v.data = xmalloc(t->len);
    if (t->len)
        memcpy(v.data, t->data, t->len);
    r->values[r->n++] = v;
    r->bytes += t->len;
    return 0;
}

static int add(struct result_batch *r, char kind, struct json_writer *w, const char *name, const char *json, size_t len,
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

int result_batch_column(struct result_batch **at, const char *name, const char *json, size_t len, struct err *err)
{
    struct result_batch *r = get(at);
    return add(r, 'c', &r->columns, name, json, len, err);
}

int result_batch_meta(struct result_batch **at, const char *name, const char *json, size_t len, struct err *err)
{
    struct result_batch *r = get(at);
    return add(r, 'm', &r->meta, name, json, len, err);
}

// Returns the text of a writer's object as if it were closed. The writer may still add members.
static const char *closed(const struct json_writer *w, struct arena *a)
{
    return arena_printf(a, "%s}", buf_str(&w->buf));
}

// Reserves the memory of a document of this length, and writes its head. NULL: there is no room for it.
static char *begin(const struct batch_layout *l, size_t len, result_batch_place_fn place, void *ctx, struct err *err)
{
    char *out = place(ctx, len);
    if (!out)
        err_set(err, ERR_LIMIT, "%zu bytes are too many", len);
    else
        memcpy(out, l->head.own.data, l->head.own.len);
    return out;
}

static int lay_out(const struct result_batch *r, struct arena *a, struct batch_layout *ret, struct err *err)
{
    struct safetensors_tensor *tensors = arena_array(a, r->n, sizeof *tensors);
    for (size_t i = 0; i < r->n; i++)
        tensors[i] = r->values[i].tensor;
    const char *columns = r->columns.buf.len > 1 ? closed(&r->columns, a) : NULL;
    const char *meta = r->meta.buf.len > 1 ? closed(&r->meta, a) : NULL;
    if (r->columns.buf.over || r->meta.buf.over || r->names.over)
        return err_set(err, ERR_LIMIT, "columns and metadata of more than %zu bytes", SAFETENSORS_HEAD_MAX);
    return batch_layout_of(tensors, r->n, columns, meta, a, ret, err);
}

int result_batch_write(const struct result_batch *r, result_batch_place_fn place, void *ctx, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(batch_layout_done) struct batch_layout layout = {0};
    struct batch read;
    if (lay_out(r, &a, &layout, err) < 0)
        return err->code;
    size_t len = layout.head.own.len + layout.len;
    char *out = begin(&layout, len, place, ctx, err);
    if (!out)
        return err->code;
    for (size_t i = 0; i < r->n; i++)
        if (r->values[i].tensor.len)
            memcpy(out + layout.head.own.len + layout.offsets[i], r->values[i].data, r->values[i].tensor.len);
    return batch_read(out, len, &a, &read, err);
}

// A document without values

static int write_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta, bool with_values,
                       result_batch_place_fn place, void *ctx, char **ret_values, size_t *ret_offsets, size_t *ret_len,
                       struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(batch_layout_done) struct batch_layout layout = {0};
    struct safetensors_tensor *described = arena_array(&a, n, sizeof *described);
    struct batch read;
    for (size_t i = 0; i < n; i++)
        if (describe(&tensors[i], &described[i], err) < 0)
            return err->code;
    if (batch_layout_of(described, n, columns, meta, &a, &layout, err) < 0)
        return err->code;
    size_t len = layout.head.own.len + (with_values ? layout.len : 0);
    char *out = begin(&layout, len, place, ctx, err);
    if (!out)
        return err->code;
    memcpy(ret_offsets, layout.offsets, n * sizeof *ret_offsets);
    *ret_len = layout.len;
    *ret_values = out + layout.head.own.len;
    return batch_read_head(out, len, &a, &read, err);
}

int result_batch_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                       result_batch_place_fn place, void *ctx, void **ret_data, struct err *err)
{
    _cleanup_(free_p) size_t *offsets = xcalloc(n, sizeof *offsets);
    char *values;
    size_t len;
    int code = write_blank(tensors, n, columns, meta, true, place, ctx, &values, offsets, &len, err);
    for (size_t i = 0; code == 0 && i < n; i++)
        ret_data[i] = values + offsets[i];
    return code;
}

int result_batch_head(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                      result_batch_place_fn place, void *ctx, size_t *ret_offsets, size_t *ret_len, struct err *err)
{
    char *ignored;
    return write_blank(tensors, n, columns, meta, false, place, ctx, &ignored, ret_offsets, ret_len, err);
}

size_t result_batch_len(const cadre_tensor *t)
{
    struct safetensors_tensor described;
    struct err ignored = ERR_INIT;
    return describe(t, &described, &ignored) == 0 ? described.len : 0;
}
