// SPDX-License-Identifier: Apache-2.0
// Safetensors documents: u64 length of the head, the head (JSON: name, dtype, shape and bytes of each tensor, and
// `__metadata__`, strings by name), the values. Nothing here reads a value. Pure. Results are in the caller's arena,
// which grows with the head and not with the values.
//
// Strict, so that two readers cannot understand a document differently: the tensors cover all bytes after the head, in
// any order, without holes or overlaps. Names are unique. A length matches dtype and shape. Values may be unaligned.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/wire/scatter.h"

#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_PREFIX 8                // bytes before the head
#define SAFETENSORS_NAME_MAX ((size_t)1024) // bytes of the name of a tensor, or of a key in __metadata__
#define SAFETENSORS_HEAD_MAX ((size_t)64 << 20)

// X(name, bits of an element)
#define SAFETENSORS_DTYPES(X) \
    X(BOOL, 8)                \
    X(F4, 4)                  \
    X(F6_E2M3, 6)             \
    X(F6_E3M2, 6)             \
    X(U8, 8)                  \
    X(I8, 8)                  \
    X(F8_E5M2, 8)             \
    X(F8_E4M3, 8)             \
    X(F8_E8M0, 8)             \
    X(F8_E4M3FNUZ, 8)         \
    X(F8_E5M2FNUZ, 8)         \
    X(I16, 16)                \
    X(U16, 16)                \
    X(F16, 16)                \
    X(BF16, 16)               \
    X(I32, 32)                \
    X(U32, 32)                \
    X(F32, 32)                \
    X(C64, 64)                \
    X(F64, 64)                \
    X(I64, 64)                \
    X(U64, 64)

enum safetensors_dtype {
#define X(name, bits) SAFETENSORS_##name,
    SAFETENSORS_DTYPES(X)
#undef X
        SAFETENSORS_DTYPE_COUNT,
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype); // "BF16"
unsigned safetensors_dtype_bits(enum safetensors_dtype dtype);
bool safetensors_dtype_find(const char *name, enum safetensors_dtype *ret); // false: there is none; accepts NULL

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    size_t n_dims; // 0 = one element
    const uint64_t *shape;
    size_t offset, len; // bytes in the document
};

struct safetensors_meta {
    const char *key, *value;
};

struct safetensors {
    struct safetensors_tensor *tensors; // in the order of their bytes
    size_t n_tensors;
    struct safetensors_meta *meta; // sorted by key
    size_t n_meta;
    size_t len; // of the whole document
    // private
    const struct safetensors_tensor **by_name;
};

// The length of prefix and head together, from the first SAFETENSORS_PREFIX bytes. ERR_LIMIT over SAFETENSORS_HEAD_MAX.
int safetensors_head_len(const char *prefix, size_t *ret, struct err *err);
// Reads only the head. `data` has the first `len` bytes of a document, at least its head. ret->len is the length of the
// whole document. ERR_INVALID and ERR_LIMIT name the tensor. `data` is not needed after the call.
int safetensors_read_head(const char *data, size_t len, struct arena *a, struct safetensors *ret, struct err *err);
// The same for a document of exactly `len` bytes.
int safetensors_read(const char *data, size_t len, struct arena *a, struct safetensors *ret, struct err *err);

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name); // or NULL
const char *safetensors_meta_get(const struct safetensors *s, const char *key);                   // or NULL

// The bytes of that many elements. ERR_LIMIT if they do not fit in a size_t. ERR_INVALID if elements of less than a
// byte do not fill the last byte.
int safetensors_size(const struct safetensors_tensor *t, size_t *ret, struct err *err);
// Sorts tensors into an order in which each is aligned to its element's size: the widest elements first.
void safetensors_sort(struct safetensors_tensor *tensors, size_t n);
// Begins a document with prefix and head for these tensors. Sets their offset and len from dtype and shape. The caller
// adds their values after it, in the same order. Names and keys must be unique and UTF-8.
int safetensors_write_head(struct scatter *out, struct safetensors_tensor *tensors, size_t n,
                           const struct safetensors_meta *meta, size_t n_meta, struct err *err);
