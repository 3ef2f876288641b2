// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_layout.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

int batch_layout_tensor(const char *name, const char *dtype, const uint64_t *shape, size_t n_dims,
                        struct safetensors_tensor *ret, struct err *err)
{
    *ret = (struct safetensors_tensor){.name = name, .n_dims = n_dims, .shape = shape};
    if (str_empty(name) || !n_dims || !shape)
        return err_set(err, ERR_INVALID, "a tensor needs a name and a shape of at least one dimension, the row");
    if (!safetensors_dtype_find(dtype, &ret->dtype))
        return err_set(err, ERR_INVALID, "tensor '%.64s' has dtype %.32s, which safetensors does not have", name,
                       dtype ? dtype : "NULL");
    return safetensors_size(ret, &ret->len, err);
}

int batch_layout_check(const struct safetensors_tensor *t, const void *data, size_t len, struct err *err)
{
    if (len == t->len && (data || !len))
        return 0;
    return err_set(err, ERR_INVALID, "tensor '%.64s' has %zu bytes of data, its shape and dtype need %zu", t->name,
                   data ? len : 0, t->len);
}

int batch_layout_of(const struct safetensors_tensor *tensors, size_t n, const char *columns, const char *meta,
                    struct arena *a, struct batch_layout *ret, struct err *err)
{
    struct safetensors_meta metas[2];
    struct safetensors_tensor *sorted = arena_array(a, n, sizeof *sorted);
    size_t *numbers = arena_array(a, n, sizeof *numbers);
    *ret = (struct batch_layout){.head = SCATTER_INIT, .offsets = arena_array(a, n, sizeof *ret->offsets)};
    for (size_t i = 0; i < n; i++) {
        sorted[i] = tensors[i];
        sorted[i].offset = i; // its number until the head is written
    }
    safetensors_sort(sorted, n);
    for (size_t i = 0; i < n; i++)
        numbers[i] = sorted[i].offset;
    int r = safetensors_write_head(&ret->head, sorted, n, metas, batch_metadata(columns, meta, metas), err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        ret->offsets[numbers[i]] = ret->len;
        ret->len += sorted[i].len;
    }
    return r;
}

void batch_layout_done(struct batch_layout *l)
{
    scatter_done(&l->head);
}
