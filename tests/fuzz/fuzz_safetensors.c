// SPDX-License-Identifier: Apache-2.0
// A safetensors document from a peer. The test writes it again with the same values, and it must read back as the same
// tensors and metadata.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void same(const struct safetensors *s, const char *data, const struct safetensors *back, const char *doc)
{
    must(s->n_tensors == back->n_tensors && s->n_meta == back->n_meta);
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct safetensors_tensor *t = &s->tensors[i], *u = safetensors_find(back, t->name);
        must(u && t->dtype == u->dtype && t->n_dims == u->n_dims && t->len == u->len);
        must(!t->n_dims || memcmp(t->shape, u->shape, t->n_dims * sizeof *t->shape) == 0);
        must(!t->len || memcmp(data + t->offset, doc + u->offset, t->len) == 0);
    }
    for (size_t i = 0; i < s->n_meta; i++)
        must(str_eq(safetensors_meta_get(back, s->meta[i].key), s->meta[i].value));
}

static void write_and_read(const struct safetensors *s, const char *data, size_t size, struct arena *a)
{
    const struct scatter_source source = {data, size};
    struct safetensors back;
    struct scatter out = SCATTER_INIT;
    struct err err = ERR_INIT;
    struct safetensors_tensor *t = arena_array(a, s->n_tensors, sizeof *t);
    if (s->n_tensors)
        memcpy(t, s->tensors, s->n_tensors * sizeof *t);
    safetensors_sort(t, s->n_tensors);
    must(safetensors_write_head(&out, t, s->n_tensors, s->meta, s->n_meta, &err) == 0);
    for (size_t i = 0; i < s->n_tensors; i++)
        scatter_add(&out, 0, safetensors_find(s, t[i].name)->offset, t[i].len);
    char *doc = xmalloc(out.len);
    scatter_gather(&out, &source, doc);
    must(safetensors_read(doc, out.len, a, &back, &err) == 0);
    same(s, data, &back, doc);
    free(doc);
    scatter_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct safetensors s;
    struct err err = ERR_INIT;
    int r = safetensors_read((const char *)data, size, &a, &s, &err);
    must(r == err.code && !r == !err.msg[0]);
    if (r == 0)
        write_and_read(&s, (const char *)data, size, &a);
    arena_done(&a);
    return 0;
}
