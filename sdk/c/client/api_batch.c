// SPDX-License-Identifier: Apache-2.0
// The public functions for batches.
#include "common/wire/batch_layout.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/body_list.h"
#include "sdk/c/client/buffer.h"
#include "sdk/c/client/client_fault.h"
#include "sdk/c/client/client_threads.h"

#include <stdlib.h>
#include <string.h>

cadre_client_content cadre_client_content_of(cadre_client_json result)
{
    if (body_list_is(result.text, result.len))
        return CADRE_CLIENT_CONTENT_LIST;
    return batch_is_safetensors(result.text, result.len) ? CADRE_CLIENT_CONTENT_BATCH : CADRE_CLIENT_CONTENT_JSON;
}

// blank: a tensor may have no data, because its values come later.
static int read_tensor(const cadre_client_tensor *t, bool blank, struct safetensors_tensor *ret, struct err *err)
{
    if (str_empty(t->name) || !t->n_dims || t->n_dims > CADRE_CLIENT_DIMS_MAX)
        return err_set(err, ERR_INVALID, "a tensor of a batch needs a name and 1 to %d dimensions",
                       CADRE_CLIENT_DIMS_MAX);
    int r = batch_layout_tensor(t->name, t->dtype, t->shape, t->n_dims, ret, err);
    return r < 0 || (blank && !t->data) ? r : batch_layout_check(ret, t->data, t->len, err);
}

// Writes the head and the values. The tensors then say where their values are, or where the caller must put them.
static void put(const struct batch_layout *l, const struct safetensors_tensor *read, cadre_client_tensor *tensors,
                size_t n, char *out)
{
    memcpy(out, l->head.own.data, l->head.own.len);
    for (size_t i = 0; i < n; i++) {
        char *values = out + l->head.own.len + l->offsets[i];
        if (tensors[i].data && read[i].len)
            memcpy(values, tensors[i].data, read[i].len);
        tensors[i].data = values;
        tensors[i].len = read[i].len;
    }
}

// Refuses a batch that is too long to be sent before it is written.
static char *new_room(cadre_client *c, size_t len, struct err *err)
{
    if (len > c->settings.max_body) {
        err_set(err, ERR_LIMIT, "a batch of %zu bytes; at most %zu are sent (max_body)", len, c->settings.max_body);
        return NULL;
    }
    char *room = buffer_new(c, len);
    if (!room)
        fault_refuse_now(err, "no room for a batch of %zu bytes: %zu bytes are waiting already", len,
                         quota_used(c->quota));
    return room;
}

// c NULL: writes into memory from malloc(); all tensors must have data. Afterwards, the tensors say where their values
// are.
static int write_batch(cadre_client *c, cadre_client_tensor *tensors, size_t n, const char *columns, const char *meta,
                       void **ret, size_t *ret_len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(batch_layout_done) struct batch_layout layout = {0};
    struct safetensors_tensor *read = arena_array(&a, n, sizeof *read);
    struct batch b;
    char *out = NULL;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = read_tensor(&tensors[i], c, &read[i], err);
    if (r == 0)
        r = batch_layout_of(read, n, columns, meta, &a, &layout, err);
    size_t len = layout.head.own.len + layout.len;
    if (r == 0 && !(out = c ? new_room(c, len, err) : xmalloc(len)))
        r = err->code;
    if (r == 0) {
        put(&layout, read, tensors, n, out);
        r = batch_read(out, len, &a, &b, err);
        *ret_len = len;
    }
    if (r < 0 && c)
        buffer_free(c, TAKE_PTR(out));
    else if (r < 0)
        free(TAKE_PTR(out));
    *ret = out;
    return r;
}

cadre_client_code cadre_client_batch_write(const cadre_client_tensor *tensors, size_t n, const char *columns,
                                           const char *meta, void **ret, size_t *ret_len, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    cadre_client_tensor *copies = xcalloc(MAX(n, (size_t)1), sizeof *copies);
    if (n)
        memcpy(copies, tensors, n * sizeof *copies);
    int r = write_batch(NULL, copies, n, columns, meta, ret, ret_len, &err);
    free(copies);
    return r < 0 ? fault_return(error, &err) : CADRE_CLIENT_OK;
}

cadre_client_code cadre_client_batch_new(cadre_client *c, cadre_client_tensor *tensors, size_t n, const char *columns,
                                         const char *meta, void **ret, size_t *ret_len, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    return write_batch(c, tensors, n, columns, meta, ret, ret_len, &err) < 0 ? fault_return(error, &err)
                                                                             : CADRE_CLIENT_OK;
}

cadre_client_code cadre_client_batch_room(cadre_client *c, size_t len, void **ret, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    client_enter(c);
    *ret = new_room(c, len, &err);
    client_leave(c);
    return *ret ? CADRE_CLIENT_OK : fault_return(error, &err);
}

void cadre_client_batch_free(cadre_client *c, void *batch)
{
    client_enter(c);
    buffer_free(c, batch);
    client_leave(c);
}

static int find_tensor(cadre_client_json doc, const char *name, struct arena *a, cadre_client_tensor *ret,
                       struct err *err)
{
    struct safetensors s;
    if (!batch_is_safetensors(doc.text, doc.len))
        return err_set(err, ERR_INVALID, "this is not a batch");
    int r = safetensors_read(doc.text, doc.len, a, &s, err);
    const struct safetensors_tensor *t = r < 0 ? NULL : safetensors_find(&s, name);
    if (r < 0)
        return r;
    if (!t)
        return err_set(err, ERR_NOT_FOUND, "the batch has no tensor '%.64s'", name);
    if (t->n_dims > CADRE_CLIENT_DIMS_MAX)
        return err_set(err, ERR_LIMIT, "tensor '%.64s' has %zu dimensions; at most %d", name, t->n_dims,
                       CADRE_CLIENT_DIMS_MAX);
    *ret = (cadre_client_tensor){.name = name,
                                 .dtype = safetensors_dtype_name(t->dtype),
                                 .n_dims = t->n_dims,
                                 .data = doc.text + t->offset,
                                 .len = t->len};
    for (size_t i = 0; i < t->n_dims; i++)
        ret->shape[i] = t->shape[i];
    return 0;
}

cadre_client_code cadre_client_batch_tensor(cadre_client_json batch, const char *name, cadre_client_tensor *ret,
                                            cadre_client_error *error)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    int r = find_tensor(batch, name, &a, ret, &err);
    return r < 0 ? fault_return(error, &err) : CADRE_CLIENT_OK;
}
