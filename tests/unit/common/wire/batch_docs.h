// SPDX-License-Identifier: Apache-2.0
// Batches as bytes and as what was read out of them, and whether their rows are the same.
#pragma once

#include "common/wire/batch_join.h"

extern struct arena batch_memory; // of what was read

// A document in an allocation of just its size, and what was read out of it.
struct doc {
    char *data;
    size_t len;
    struct batch batch;
};

int batch_teardown(void **state);
struct doc doc_read(struct doc d);
struct doc doc_of(const struct scatter *s, const struct doc *sources, size_t n);
struct doc json_doc(const char *text);
// Tensors of U8 whose values count up from `first`.
struct doc tensor_doc(const char *name, enum safetensors_dtype dtype, size_t rows, size_t width, uint8_t first,
                      const char *columns, const char *meta);
struct doc doc_slice(const struct doc *d, size_t from, size_t rows);
// Joins pieces in their order: `rows` rows, and `added` rows of padding.
int doc_join(const struct doc *docs, size_t n, size_t rows, size_t added, struct doc *ret, struct err *err);
void text_is(const struct doc *d, const char *want);
const uint8_t *row(const struct doc *d, const char *name, size_t i, size_t *ret_len);
char *cell(const struct doc *d, const struct batch_column *c, size_t i);
// Row i of a is row k of b, in every tensor and column.
void rows_equal(const struct doc *a, size_t i, const struct doc *b, size_t k);
// The same but for rows: names, dtypes, dimensions, metadata.
void kinds_equal(const struct doc *a, const struct doc *b);
