// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call_batch.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>
#include <string.h>

enum { ALIGN = 8 };

// The sender aligns values inside the document. The document itself may begin anywhere.
static void align(struct cadre_call *c)
{
    if ((uintptr_t)c->args % ALIGN == 0)
        return;
    c->aligned = xmalloc(c->args_len);
    memcpy(c->aligned, c->args, c->args_len);
    c->args = c->aligned;
}

static int read_meta(struct cadre_call *c, struct err *err)
{
    const char *text = safetensors_meta_get(&c->batch.doc, BATCH_META);
    struct json *root;
    if (!text)
        return 0;
    int r = json_parse_values(text, strlen(text), 1, &c->arena, &root, err);
    if (r == 0)
        c->meta = root;
    return r < 0 ? err_wrap(err, "%s", BATCH_META) : 0;
}

cadre_result call_batch_read(struct cadre_call *c)
{
    struct err err = ERR_INIT;
    int r;
    if (c->device.args) {
        r = batch_read_head(c->args, c->args_len - c->device.args->len, &c->arena, &c->batch, &err);
    } else {
        align(c);
        r = batch_read(c->args, c->args_len, &c->arena, &c->batch, &err);
    }
    if (r == 0)
        r = read_meta(c, &err);
    return r < 0 ? call_fail(c, CADRE_INVALID_ARGUMENT, "%s(): %s", c->method, err.msg) : CADRE_OK;
}

// Iterates over the columns as whole lists. The batch knows only their values. Returns 0 at the end.
static int next_column(struct cadre_call *c, struct json_scan *scan, const char **ret_name, struct json_item *ret)
{
    struct json *name;
    struct err err = ERR_INIT;
    if (json_scan_next(scan, ret) <= 0 || json_parse(ret->key - 1, ret->key_len + 2, NULL, &c->arena, &name, &err) < 0)
        return 0;
    *ret_name = json_str(name, &c->arena);
    return 1;
}

static bool first_column(const struct cadre_call *c, struct json_scan *scan)
{
    const char *text = safetensors_meta_get(&c->batch.doc, BATCH_COLUMNS);
    return text && json_scan_begin(scan, text, strlen(text));
}

const char *call_batch_column(struct cadre_call *c, const char *name, size_t *ret_len)
{
    struct json_scan scan;
    struct json_item item;
    const char *found;
    if (name && first_column(c, &scan))
        while (next_column(c, &scan, &found, &item))
            if (str_eq(found, name)) {
                *ret_len = item.len;
                return item.text;
            }
    return NULL;
}

bool call_batch_surplus(struct cadre_call *c, const struct call_names *names, const char **ret_name, size_t *ret_len)
{
    struct json_scan scan;
    struct json_item item;
    for (size_t i = 0; i < c->batch.doc.n_tensors; i++) {
        *ret_name = c->batch.doc.tensors[i].name;
        *ret_len = strlen(*ret_name);
        if (!call_names_have(names, *ret_name, *ret_len))
            return true;
    }
    for (bool more = first_column(c, &scan); more && next_column(c, &scan, ret_name, &item);) {
        *ret_name = *ret_name ? *ret_name : "";
        *ret_len = strlen(*ret_name);
        if (!call_names_have(names, *ret_name, *ret_len))
            return true;
    }
    return false;
}

static char *place_result(void *ctx, size_t len)
{
    return call_place_result(ctx, len);
}

cadre_result call_batch_write(struct cadre_call *c)
{
    struct err err = ERR_INIT;
    return result_batch_write(c->result_batch, place_result, c, &err) == 0
               ? CADRE_OK
               : call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns no batch: %s", c->method, err.msg);
}

// Arguments

CADRE_EXPORT int cadre_is_batch(const cadre_call *c)
{
    return c->root == NULL;
}

CADRE_EXPORT size_t cadre_rows(const cadre_call *c)
{
    return c->batch.rows;
}

// For a batch whose values are on the device: copies a tensor to the host when somebody reads it.
static int fetch(struct cadre_call *c, const struct safetensors_tensor *t, struct err *err)
{
    size_t i = (size_t)(t - c->batch.doc.tensors), head = c->args_len - (c->device.args ? c->device.args->len : 0);
    if (!c->device.args || (c->on_host && c->on_host[i]))
        return 0;
    if (!c->aligned) {
        c->aligned = xmalloc(c->args_len);
        memcpy(c->aligned, c->args, head);
        c->args = c->aligned;
        c->on_host = arena_array(&c->arena, c->batch.doc.n_tensors, sizeof *c->on_host);
        memset(c->on_host, 0, c->batch.doc.n_tensors * sizeof *c->on_host);
    }
    int r = call_device_download(&c->device, c->aligned + t->offset, (char *)c->device.args->memory + t->offset - head,
                                 t->len, &c->canceled, err);
    c->on_host[i] = r == 0;
    return r;
}

CADRE_EXPORT const char *cadre_args(const cadre_call *call, size_t *ret_len)
{
    struct cadre_call *c = (struct cadre_call *)(uintptr_t)call; // fetching does not change the call for the caller
    struct err err = ERR_INIT;
    for (size_t i = 0; c->device.args && i < c->batch.doc.n_tensors; i++)
        if (fetch(c, &c->batch.doc.tensors[i], &err) < 0) {
            (void)call_fail_device(c, &err);
            *ret_len = 0;
            return "";
        }
    *ret_len = c->args_len;
    return c->args;
}

static cadre_result give(struct cadre_call *c, const struct safetensors_tensor *t, cadre_tensor *ret)
{
    struct err err = ERR_INIT;
    if (fetch(c, t, &err) < 0)
        return call_fail_device(c, &err);
    *ret = (cadre_tensor){.name = t->name,
                          .dtype = safetensors_dtype_name(t->dtype),
                          .shape = t->shape,
                          .n_dims = t->n_dims,
                          .data = c->args + t->offset,
                          .len = t->len};
    return CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_tensor_at(cadre_call *c, size_t i, cadre_tensor *ret)
{
    if (i >= c->batch.doc.n_tensors)
        return CADRE_NOT_FOUND;
    return give(c, &c->batch.doc.tensors[i], ret);
}

CADRE_EXPORT cadre_result cadre_column_at(cadre_call *c, size_t i, const char **ret_name, const char **ret_json,
                                          size_t *ret_len)
{
    struct json_scan scan;
    struct json_item item;
    bool more = first_column(c, &scan);
    for (size_t k = 0; more && (more = next_column(c, &scan, ret_name, &item)) && k < i; k++)
        ;
    if (!more)
        return CADRE_NOT_FOUND;
    *ret_json = item.text;
    *ret_len = item.len;
    return CADRE_OK;
}

static cadre_result no_batch(struct cadre_call *c, const char *name)
{
    return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() needs a batch with '%s', it was called with JSON", c->method,
                     name ? name : "?");
}

cadre_result call_batch_find(struct cadre_call *c, const char *name, const struct safetensors_tensor **ret)
{
    *ret = name && !c->root ? safetensors_find(&c->batch.doc, name) : NULL;
    if (c->root)
        return no_batch(c, name);
    return *ret ? CADRE_OK : call_missing(c, name, 0);
}

CADRE_EXPORT cadre_result cadre_arg_tensor(cadre_call *c, const char *name, cadre_tensor *ret)
{
    const struct safetensors_tensor *t;
    cadre_result r = call_batch_find(c, name, &t);
    return r == CADRE_OK ? give(c, t, ret) : r;
}

CADRE_EXPORT cadre_result cadre_arg_meta(cadre_call *c, const char *name, const char **ret, size_t *ret_len)
{
    const struct json *v = c->meta && name ? json_get(c->meta, name) : NULL;
    if (c->root)
        return no_batch(c, name);
    if (!v)
        return call_missing(c, name, 0);
    *ret = v->text;
    *ret_len = v->len;
    return CADRE_OK;
}

// Results

static cadre_result outcome(struct cadre_call *c, int r, const struct err *err)
{
    buf_reset(&c->result);
    return r < 0 ? call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns what is not a batch: %s", c->method, err->msg)
                 : CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_return_tensor(cadre_call *c, const cadre_tensor *t)
{
    struct err err = ERR_INIT;
    return outcome(c, result_batch_tensor(&c->result_batch, t, CALL_RESULT_MAX, &err), &err);
}

CADRE_EXPORT cadre_result cadre_return_column(cadre_call *c, const char *name, const char *json, size_t len)
{
    struct err err = ERR_INIT;
    return outcome(c, result_batch_column(&c->result_batch, name, json, len, &err), &err);
}

CADRE_EXPORT cadre_result cadre_return_meta(cadre_call *c, const char *name, const char *json, size_t len)
{
    struct err err = ERR_INIT;
    return outcome(c, result_batch_meta(&c->result_batch, name, json, len, &err), &err);
}

CADRE_EXPORT cadre_result cadre_return_blank(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                             const char *meta, void **ret_data)
{
    struct err err = ERR_INIT;
    result_batch_free(TAKE_PTR(c->result_batch));
    int r = result_batch_blank(tensors, n, columns, meta, place_result, c, ret_data, &err);
    if (r < 0)
        (void)call_return(c, "null", 4); // drops the result that was begun
    return r < 0 ? outcome(c, r, &err) : CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_return_batch(cadre_call *c, const void *document, size_t len)
{
    struct err err = ERR_INIT;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct batch b;
    int r = batch_is_safetensors(document, len)
                ? batch_read(document, len, &a, &b, &err)
                : err_set(&err, ERR_INVALID, "no safetensors document; cadre_return_json() is for JSON");
    return r < 0 ? outcome(c, r, &err) : call_return(c, document, len);
}
