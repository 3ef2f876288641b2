// SPDX-License-Identifier: Apache-2.0
// The layout of a new batch, in the form of a safetensors document: its head, and where the values of each tensor
// belong. Pure.
#pragma once

#include "common/wire/batch.h"

// Describes a tensor, from what a user says about it. ret->len is the length of its values. Borrows name and shape.
// ERR_INVALID: it has no name or no dimension, or safetensors does not have the dtype.
int batch_layout_tensor(const char *name, const char *dtype, const uint64_t *shape, size_t n_dims,
                        struct safetensors_tensor *ret, struct err *err);
// ERR_INVALID if `len` bytes of data are not the values of this tensor.
int batch_layout_check(const struct safetensors_tensor *t, const void *data, size_t len, struct err *err);

struct batch_layout {
    struct scatter head;
    size_t *offsets; // where the values of each tensor belong, counted from the end of the head
    size_t len;      // of the values of all tensors
};

// `columns` and `meta` are JSON objects, NULL = none. The offsets are in the arena. Call batch_layout_done() in any
// case. ERR_INVALID, ERR_LIMIT.
int batch_layout_of(const struct safetensors_tensor *tensors, size_t n, const char *columns, const char *meta,
                    struct arena *a, struct batch_layout *ret, struct err *err);
void batch_layout_done(struct batch_layout *l);
