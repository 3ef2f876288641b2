// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call_view.h"

#include "common/base/mem.h"
#include "worker/host/host_call_batch.h"

#include <string.h>

// Copies the result to the host, behind its head.
static cadre_result bring(struct cadre_call *c)
{
    const struct region *values = c->device.copied = TAKE_PTR(c->device.result);
    _cleanup_(buf_done) struct buf head = c->result;
    struct err err = ERR_INIT;
    c->result = BUF_INIT(CALL_RESULT_MAX);
    char *place = call_place_result(c, head.len + values->len);
    int r = place ? 0 : err_set(&err, ERR_LIMIT, "results of more than %zu bytes", CALL_RESULT_MAX);
    if (r == 0) {
        memcpy(place, head.data, head.len);
        r = call_device_download(&c->device, place + head.len, values->memory, values->len, &c->canceled, &err);
    }
    return r < 0 ? call_fail_device(c, &err) : CADRE_OK;
}

cadre_result call_view_write(struct cadre_call *c)
{
    struct err err = ERR_INIT;
    if (call_device_settle(&c->device, c->keep, &c->canceled, &err) < 0)
        return call_fail_device(c, &err);
    return c->keep ? CADRE_OK : bring(c);
}

// The head does not go into shared memory, because it is not sent alone.
static char *place_head(void *ctx, size_t len)
{
    struct cadre_call *c = ctx;
    struct pool *pool = TAKE_PTR(c->pool);
    char *place = call_place_result(c, len);
    c->pool = pool;
    return place;
}

// Parts

static bool is_on_device(const cadre_host_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (parts[i].on_device)
            return true;
    return false;
}

static size_t length(const cadre_host_part *parts, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

// Call this inside the device.
static int move_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, char *to,
                      bool to_device, struct err *err)
{
    struct copier *copier = c->device.copier;
    struct device *d = rank_device_of(c->device.rank);
    int r = copier_join(copier, stream, err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const cadre_host_part *p = &parts[i];
        if (to_device)
            r = p->on_device ? device_copy(d, to, p->data, p->len, copier_stream(copier), err)
                             : copier_upload(copier, to, p->data, p->len, DEVICE_NO_LIMIT, &c->canceled, err);
        else if (p->on_device)
            r = copier_download(copier, to, p->data, p->len, DEVICE_NO_LIMIT, &c->canceled, err);
        else if (p->len)
            memcpy(to, p->data, p->len);
        to += p->len;
    }
    return r;
}

static int keep_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, struct err *err)
{
    char *head = place_head(c, parts[0].len);
    if (!head)
        return err_set(err, ERR_LIMIT, "a head of %zu bytes is too long", parts[0].len);
    memcpy(head, parts[0].data, parts[0].len);
    int r = call_device_room(&c->device, length(parts + 1, n - 1), err);
    if (r == 0 && (r = call_device_enter(&c->device, err)) == 0) {
        r = move_parts(c, parts + 1, n - 1, stream, c->device.result->memory, true, err);
        call_device_leave(&c->device);
    }
    return r < 0 ? r : call_device_settle(&c->device, true, &c->canceled, err);
}

static int send_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, struct err *err)
{
    size_t len = length(parts, n);
    char *place = call_place_result(c, len);
    if (!place)
        return err_set(err, ERR_LIMIT, "%zu bytes are too many; at most %zu", len, CALL_RESULT_MAX);
    int r = call_device_enter(&c->device, err);
    if (r < 0)
        return r;
    r = move_parts(c, parts, n, stream, place, false, err);
    call_device_leave(&c->device);
    return r;
}

int call_return_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, struct err *err)
{
    int r =
        c->keep && is_on_device(parts, n) ? keep_parts(c, parts, n, stream, err) : send_parts(c, parts, n, stream, err);
    if (r < 0)
        (void)call_fail_device(c, err);
    return r;
}

// The ABI

static cadre_view view_of(struct cadre_call *c, const cadre_tensor *t, size_t len, void *data)
{
    return (cadre_view){.name = arena_strdup(&c->arena, t->name),
                        .dtype = arena_strdup(&c->arena, t->dtype),
                        .shape = arena_memdup(&c->arena, t->shape, t->n_dims * sizeof *t->shape),
                        .n_dims = t->n_dims,
                        .data = data,
                        .len = len,
                        .device = rank_device_number(c->device.rank),
                        .stream = c->device.copier ? copier_stream(c->device.copier) : NULL};
}

// Returns where the tensor is on the device.
static int locate(struct cadre_call *c, const struct safetensors_tensor *t, void **ret, struct err *err)
{
    struct call_device *d = &c->device;
    size_t i = (size_t)(t - c->batch.doc.tensors);
    if (!d->args)
        return call_device_upload(d, i, c->batch.doc.n_tensors, c->args + t->offset, t->len, &c->canceled, ret, err);
    int r = call_device_enter(d, err); // for the stream of the view
    if (r == 0)
        call_device_leave(d);
    *ret = (char *)d->args->memory + t->offset - (c->args_len - d->args->len);
    return r;
}

CADRE_EXPORT cadre_result cadre_arg_view(cadre_call *c, const char *name, cadre_view *ret)
{
    const struct safetensors_tensor *t;
    struct err err = ERR_INIT;
    void *data;
    cadre_result r = call_batch_find(c, name, &t);
    if (r != CADRE_OK)
        return r;
    if (!rank_device_has_gpu(c->device.rank))
        data = (void *)(uintptr_t)(c->args + t->offset);
    else if (locate(c, t, &data, &err) < 0)
        return call_fail_device(c, &err);
    const cadre_tensor tensor = {t->name, safetensors_dtype_name(t->dtype), t->shape, t->n_dims, NULL, 0};
    *ret = view_of(c, &tensor, t->len, data);
    return CADRE_OK;
}

static cadre_result return_on_device(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                     const char *meta, void **ret_data)
{
    struct err err = ERR_INIT;
    size_t *offsets = arena_array(&c->arena, n, sizeof *offsets), len;
    result_batch_free(TAKE_PTR(c->result_batch));
    if (result_batch_head(tensors, n, columns, meta, place_head, c, offsets, &len, &err) < 0)
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns what is not a batch: %s", c->method, err.msg);
    if (len > CALL_RESULT_MAX)
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns %zu bytes; at most %zu", c->method, len,
                         CALL_RESULT_MAX);
    if (call_device_room(&c->device, len, &err) < 0)
        return call_fail_device(c, &err);
    for (size_t i = 0; i < n; i++)
        ret_data[i] = (char *)c->device.result->memory + offsets[i];
    return CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_return_views(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                             const char *meta, cadre_view *ret)
{
    void **data = arena_array(&c->arena, n, sizeof *data);
    cadre_result r = rank_device_has_gpu(c->device.rank) ? return_on_device(c, tensors, n, columns, meta, data)
                                                         : cadre_return_blank(c, tensors, n, columns, meta, data);
    for (size_t i = 0; r == CADRE_OK && i < n; i++)
        ret[i] = view_of(c, &tensors[i], result_batch_len(&tensors[i]), data[i]);
    return r;
}
