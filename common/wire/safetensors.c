// SPDX-License-Identifier: Apache-2.0
#include "common/wire/safetensors.h"

#include "common/base/fiber.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

#define METADATA "__metadata__"
#define HEAD_ALIGN 8
#define VALUES_MAX (SIZE_MAX / 4) // of all tensors: offsets fit in JSON's numbers, and a whole document in a size_t
#define NAME_SHOWN 128            // shown bytes of a name in a message; for %.*s
#define TENSOR_UNITS 256          // cost of reading or writing a tensor
#define COMPARE_UNITS 32          // cost of a comparison

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
#define X(name, bits) {#name, bits},
    SAFETENSORS_DTYPES(X)
#undef X
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

unsigned safetensors_dtype_bits(enum safetensors_dtype dtype)
{
    return dtypes[dtype].bits;
}

bool safetensors_dtype_find(const char *name, enum safetensors_dtype *ret)
{
    for (size_t i = 0; i < SAFETENSORS_DTYPE_COUNT; i++)
        if (str_eq(name, dtypes[i].name)) {
            *ret = (enum safetensors_dtype)i;
            return true;
        }
    return false;
}

int safetensors_size(const struct safetensors_tensor *t, size_t *ret, struct err *err)
{
    size_t bits = dtypes[t->dtype].bits;
    for (size_t i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(bits, t->shape[i], &bits))
            return err_set(err, ERR_LIMIT, "tensor '%.*s' is larger than any memory", NAME_SHOWN, t->name);
    if (bits % 8)
        return err_set(err, ERR_INVALID, "tensor '%.*s' of %s ends in the middle of a byte", NAME_SHOWN, t->name,
                       dtypes[t->dtype].name);
    *ret = bits / 8;
    return 0;
}

static int read_dtype(const struct json *v, struct safetensors_tensor *t, struct err *err)
{
    for (int i = 0; i < SAFETENSORS_DTYPE_COUNT; i++)
        if (json_str_is(v, dtypes[i].name)) {
            t->dtype = (enum safetensors_dtype)i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "tensor '%.*s' has dtype %.*s, which safetensors does not have", NAME_SHOWN,
                   t->name, v ? (int)MIN(v->len, 32u) : 4, v ? v->text : "none");
}

static int read_shape(const struct json *v, struct safetensors_tensor *t, struct arena *a, struct err *err)
{
    uint64_t *shape;
    if (!v || v->type != JSON_LIST)
        return err_set(err, ERR_INVALID, "tensor '%.*s' has no shape", NAME_SHOWN, t->name);
    t->shape = shape = arena_array(a, json_count(v), sizeof *shape);
    JSON_FOREACH(item, v) {
        int64_t size;
        if (!json_i64(item, &size) || size < 0)
            return err_set(err, ERR_INVALID, "tensor '%.*s': dimension %zu of its shape is not a size: %.*s",
                           NAME_SHOWN, t->name, t->n_dims, (int)MIN(item->len, 32u), item->text);
        shape[t->n_dims++] = (uint64_t)size;
    }
    return 0;
}

static int read_offsets(const struct json *v, struct safetensors_tensor *t, struct err *err)
{
    int64_t begin, end;
    size_t want = 0;
    if (!v || v->type != JSON_LIST || json_count(v) != 2 || !json_i64(v->child, &begin) ||
        !json_i64(v->child->next, &end) || begin < 0 || end < begin)
        return err_set(err, ERR_INVALID, "tensor '%.*s' has no data_offsets [begin, end]", NAME_SHOWN, t->name);
    int r = safetensors_size(t, &want, err);
    if (r < 0)
        return r;
    t->offset = (size_t)begin;
    t->len = (size_t)(end - begin);
    if (t->len != want)
        return err_set(err, ERR_INVALID, "tensor '%.*s' has %zu bytes, but its shape and dtype %s need %zu", NAME_SHOWN,
                       t->name, t->len, dtypes[t->dtype].name, want);
    return 0;
}

static int check_name(const struct json *v, struct err *err)
{
    return v->key_len <= SAFETENSORS_NAME_MAX ? 0
                                              : err_set(err, ERR_LIMIT, "a name of %u bytes, '%.*s...'; at most %zu",
                                                        v->key_len, NAME_SHOWN, v->key, SAFETENSORS_NAME_MAX);
}

static int read_tensor(const struct json *v, struct safetensors_tensor *t, struct arena *a, struct err *err)
{
    if (check_name(v, err) < 0)
        return err->code;
    fiber_spend(TENSOR_UNITS);
    t->name = arena_strndup(a, v->key, v->key_len);
    if (v->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "tensor '%.*s' is described by a JSON %s instead of an object", NAME_SHOWN,
                       t->name, json_type_name(v->type));
    int r = read_dtype(json_get(v, "dtype"), t, err);
    if (r == 0)
        r = read_shape(json_get(v, "shape"), t, a, err);
    return r < 0 ? r : read_offsets(json_get(v, "data_offsets"), t, err);
}

static int by_key(const void *a, const void *b)
{
    fiber_spend(COMPARE_UNITS);
    return strcmp(((const struct safetensors_meta *)a)->key, ((const struct safetensors_meta *)b)->key);
}

static int read_meta(const struct json *v, struct safetensors *s, struct arena *a, struct err *err)
{
    if (v->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%s is a JSON %s instead of an object", METADATA, json_type_name(v->type));
    s->meta = arena_array(a, json_count(v), sizeof *s->meta);
    JSON_FOREACH(item, v) {
        struct safetensors_meta *m = &s->meta[s->n_meta++];
        if (check_name(item, err) < 0)
            return err->code;
        m->key = arena_strndup(a, item->key, item->key_len);
        m->value = json_str(item, a);
        if (!m->value)
            return err_set(err, ERR_INVALID, "'%.*s' in %s is a JSON %s instead of a string", NAME_SHOWN, m->key,
                           METADATA, json_type_name(item->type));
    }
    qsort(s->meta, s->n_meta, sizeof *s->meta, by_key);
    for (size_t i = 1; i < s->n_meta; i++)
        if (str_eq(s->meta[i - 1].key, s->meta[i].key))
            return err_set(err, ERR_INVALID, "'%.*s' is in %s twice", NAME_SHOWN, s->meta[i].key, METADATA);
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    fiber_spend(COMPARE_UNITS);
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->len != y->len) // empty ones first, so that each begins at the end of the one before
        return x->len < y->len ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    fiber_spend(COMPARE_UNITS);
    return strcmp((*(const struct safetensors_tensor *const *)a)->name,
                  (*(const struct safetensors_tensor *const *)b)->name);
}

static int check_offsets(struct safetensors *s, size_t head, struct err *err)
{
    size_t at = 0;
    qsort(s->tensors, s->n_tensors, sizeof *s->tensors, by_offset);
    for (size_t i = 0; i < s->n_tensors; i++) {
        struct safetensors_tensor *t = &s->tensors[i];
        if (t->offset != at)
            return err_set(err, ERR_INVALID, "tensor '%.*s' begins at byte %zu of the values, %s byte %zu", NAME_SHOWN,
                           t->name, t->offset, t->offset < at ? "but others reach to" : "with a hole from", at);
        at += t->len;
        t->offset += head;
    }
    s->len = head + at;
    return 0;
}

static int check_names(struct safetensors *s, struct arena *a, struct err *err)
{
    s->by_name = arena_array(a, s->n_tensors, sizeof *s->by_name);
    for (size_t i = 0; i < s->n_tensors; i++)
        s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n_tensors, sizeof *s->by_name, by_name);
    for (size_t i = 1; i < s->n_tensors; i++)
        if (str_eq(s->by_name[i - 1]->name, s->by_name[i]->name))
            return err_set(err, ERR_INVALID, "there are two tensors '%.*s'", NAME_SHOWN, s->by_name[i]->name);
    return 0;
}

int safetensors_head_len(const char *prefix, size_t *ret, struct err *err)
{
    uint64_t len = le_get_u64(prefix);
    if (len > SAFETENSORS_HEAD_MAX)
        return err_set(err, ERR_LIMIT,
                       "not a safetensors document, or one with a head of %llu bytes, where at most %zu are read",
                       (unsigned long long)len, SAFETENSORS_HEAD_MAX);
    *ret = SAFETENSORS_PREFIX + (size_t)len;
    return 0;
}

static int read_members(const struct json *root, struct arena *a, struct safetensors *ret, struct err *err)
{
    bool has_meta = false;
    ret->tensors = arena_array(a, json_count(root), sizeof *ret->tensors);
    JSON_FOREACH(item, root) {
        int r;
        if (json_key_is(item, METADATA)) {
            if (has_meta)
                return err_set(err, ERR_INVALID, "there are two %s", METADATA);
            has_meta = true;
            r = read_meta(item, ret, a, err);
        } else {
            r = read_tensor(item, &ret->tensors[ret->n_tensors++], a, err);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_json(const char *data, size_t head, struct arena *a, struct safetensors *ret, struct err *err)
{
    struct json *root;
    const char *text = data + SAFETENSORS_PREFIX;
    size_t len = head - SAFETENSORS_PREFIX;
    if (!len || *text != '{')
        return err_set(err, ERR_INVALID, "its head is not a JSON object");
    if (json_parse(text, len, NULL, a, &root, err) < 0 || read_members(root, a, ret, err) < 0 ||
        check_offsets(ret, head, err) < 0)
        return err->code;
    return check_names(ret, a, err);
}

int safetensors_read_head(const char *data, size_t len, struct arena *a, struct safetensors *ret, struct err *err)
{
    size_t head = 0;
    *ret = (struct safetensors){0};
    if (len < SAFETENSORS_PREFIX)
        return err_set(err, ERR_INVALID, "not a safetensors document: it has only %zu bytes", len);
    int r = safetensors_head_len(data, &head, err);
    if (r < 0)
        return r;
    if (head > len)
        return err_set(
            err, ERR_INVALID,
            "not a safetensors document, or one that was cut off: its head of %zu bytes does not fit into %zu",
            head - SAFETENSORS_PREFIX, len);
    r = read_json(data, head, a, ret, err);
    return r < 0 ? err_wrap(err, "safetensors") : 0;
}

int safetensors_read(const char *data, size_t len, struct arena *a, struct safetensors *ret, struct err *err)
{
    int r = safetensors_read_head(data, len, a, ret, err);
    if (r == 0 && ret->len != len)
        return err_set(err, ERR_INVALID, "safetensors: a document of %zu bytes, but its tensors end at byte %zu", len,
                       ret->len);
    return r;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    const struct safetensors_tensor key = {.name = name}, *at = &key;
    const struct safetensors_tensor **found =
        s->n_tensors ? bsearch(&at, s->by_name, s->n_tensors, sizeof *s->by_name, by_name) : NULL;
    return found ? *found : NULL;
}

const char *safetensors_meta_get(const struct safetensors *s, const char *key)
{
    const struct safetensors_meta at = {.key = key};
    const struct safetensors_meta *found = s->n_meta ? bsearch(&at, s->meta, s->n_meta, sizeof *s->meta, by_key) : NULL;
    return found ? found->value : NULL;
}

void safetensors_sort(struct safetensors_tensor *tensors, size_t n)
{
    // A counting sort, because it must keep the order of equals. Widths are 4, 6, 8, ... 64 bits.
    struct safetensors_tensor *sorted = xcalloc(n + 1, sizeof *sorted);
    size_t at = 0;
    for (unsigned bits = 64; bits; bits--)
        for (size_t i = 0; i < n; i++)
            if (dtypes[tensors[i].dtype].bits == bits)
                sorted[at++] = tensors[i];
    if (n)
        memcpy(tensors, sorted, n * sizeof *sorted);
    free(sorted);
}

static void write_tensor(struct json_writer *w, const struct safetensors_tensor *t)
{
    fiber_spend(TENSOR_UNITS);
    writer_key(w, t->name, strlen(t->name));
    writer_object(w, NULL);
    writer_str(w, "dtype", dtypes[t->dtype].name);
    writer_list(w, "shape");
    for (size_t i = 0; i < t->n_dims; i++)
        writer_i64(w, NULL, (int64_t)t->shape[i]);
    writer_list_end(w);
    writer_list(w, "data_offsets");
    writer_i64(w, NULL, (int64_t)t->offset);
    writer_i64(w, NULL, (int64_t)(t->offset + t->len));
    writer_list_end(w);
    writer_object_end(w);
}

static void write_json(struct json_writer *w, const struct safetensors_tensor *tensors, size_t n,
                       const struct safetensors_meta *meta, size_t n_meta)
{
    writer_object(w, NULL);
    if (n_meta)
        writer_object(w, METADATA);
    for (size_t i = 0; i < n_meta; i++)
        writer_str(w, meta[i].key, meta[i].value);
    if (n_meta)
        writer_object_end(w);
    for (size_t i = 0; i < n; i++)
        write_tensor(w, &tensors[i]);
    writer_object_end(w);
    while (w->buf.len % HEAD_ALIGN && buf_putc(&w->buf, ' ') == 0)
        ;
}

int safetensors_write_head(struct scatter *out, struct safetensors_tensor *tensors, size_t n,
                           const struct safetensors_meta *meta, size_t n_meta, struct err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct safetensors_tensor *t = &tensors[i];
        int r = safetensors_size(t, &t->len, err);
        if (r < 0)
            return r;
        t->offset = at;
        if (__builtin_add_overflow(at, t->len, &at) || at > VALUES_MAX)
            return err_set(err, ERR_LIMIT, "tensors that are together larger than any memory");
    }
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT_MAX(SAFETENSORS_HEAD_MAX);
    write_json(&w, tensors, n, meta, n_meta);
    if (w.buf.over)
        return err_set(err, ERR_LIMIT, "%zu tensors and their metadata need a head of more than %zu bytes", n,
                       SAFETENSORS_HEAD_MAX);
    char prefix[SAFETENSORS_PREFIX];
    le_put_u64(prefix, w.buf.len);
    scatter_own(out, prefix, sizeof prefix);
    scatter_own(out, w.buf.data, w.buf.len);
    for (size_t i = 0; i < n; i++)
        tensors[i].offset += SAFETENSORS_PREFIX + w.buf.len;
    return 0;
}
