// SPDX-License-Identifier: Apache-2.0
// The batch that a method returns in parts, until it is written as one document.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "sdk/c/include/cadre/worker.h"

struct returned;

void returned_free(struct returned *r); // accepts NULL

// Each begins one where *r is NULL. ERR_INVALID, ERR_LIMIT.
int returned_tensor(struct returned **r, const cadre_tensor *t, size_t max, struct err *err);
int returned_column(struct returned **r, const char *name, const char *json, size_t len, struct err *err);
int returned_meta(struct returned **r, const char *name, const char *json, size_t len, struct err *err);
// Memory for so many bytes, NULL where that is too much.
typedef char *(*returned_place_fn)(void *ctx, size_t len);
// The document, in one piece. ERR_INVALID where it is not a batch, ERR_LIMIT where there is no place for it.
int returned_write(const struct returned *r, returned_place_fn place, void *ctx, struct err *err);
// A document of these tensors, whose data and len do not count: where the values of each belong, which are not written.
// `columns` and `meta` are JSON objects, NULL = none. As above.
int returned_blank(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta,
                   returned_place_fn place, void *ctx, void **ret_data, struct err *err);
// Only the head of such a document: offsets[i] is where the values of a tensor belong behind it, *ret_len how long all
// values are. As above.
int returned_head(const cadre_tensor *tensors, size_t n, const char *columns, const char *meta, returned_place_fn place,
                  void *ctx, size_t *ret_offsets, size_t *ret_len, struct err *err);
size_t returned_len(const cadre_tensor *t); // bytes of a tensor whose description was good
