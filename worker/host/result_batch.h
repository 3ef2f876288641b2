// SPDX-License-Identifier: Apache-2.0
// The batch that a method returns in parts, until all parts are written as one document.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "sdk/c/include/cadre/worker.h"

struct result_batch;

void result_batch_free(struct result_batch *r); // accepts NULL

// Each of these begins a batch if *r is NULL. ERR_INVALID, ERR_LIMIT.
int result_batch_tensor(struct result_batch **r, const cadre_tensor *t, size_t max, struct err *err);
int result_batch_column(struct result_batch **r, const char *name, const char *json, size_t len, struct err *err);
int result_batch_meta(struct result_batch **r, const char *name, const char *json, size_t len, struct err *err);
// Returns memory for that many bytes; NULL = too many.
typedef char *(*result_batch_place_fn)(void *ctx, size_t len);
// Writes the document in one piece. ERR_INVALID: it is not a batch. ERR_LIMIT: there is no room for it.
int result_batch_write(const struct result_batch *r, result_batch_place_fn place, void *ctx, struct err *err);
// Writes a document of these tensors without their values; their data and len are ignored. ret_data[i] is where the
// values of tensor i belong. `columns` and `meta` are JSON objects, NULL = none. The errors of result_batch_write().
int result_batch_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                       result_batch_place_fn place, void *ctx, void **ret_data, struct err *err);
// Writes only the head of such a document. offsets[i] is where the values of tensor i belong behind the head. *ret_len
// is the length of all values. The errors of result_batch_write().
int result_batch_head(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                      result_batch_place_fn place, void *ctx, size_t *ret_offsets, size_t *ret_len, struct err *err);
size_t result_batch_len(const cadre_tensor *t); // bytes of a tensor with a correct description
