// SPDX-License-Identifier: Apache-2.0
#include "common/transfer/transfer_side.h"

#include "common/base/le.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

enum { NAME_MAX_BYTES = UINT16_MAX };

static void put_u8(struct buf *out, size_t v)
{
    buf_putc(out, (char)v);
}

static void put_u32(struct buf *out, uint32_t v)
{
    char bytes[sizeof v];
    le_put_u32(bytes, v);
    buf_append(out, bytes, sizeof bytes);
}

static int check_lengths(const struct transfer_side *s, struct err *err)
{
    if (s->mesh->n_dims > MESH_DIMS_MAX)
        return err_set(err, ERR_INVALID, "the mesh of %s has %zu dimensions, at most %d", s->name, s->mesh->n_dims,
                       MESH_DIMS_MAX);
    if (s->n > TRANSFER_TENSORS_MAX)
        return err_set(err, ERR_LIMIT, "%s has %zu tensors, at most %d", s->name, s->n, TRANSFER_TENSORS_MAX);
    for (size_t i = 0; i < s->n; i++) {
        const struct transfer_tensor *t = &s->tensors[i];
        if (strlen(t->name) > NAME_MAX_BYTES)
            return err_set(err, ERR_INVALID, "a tensor of %s has a name of %zu bytes", s->name, strlen(t->name));
        if (t->n_dims > SHARD_DIMS_MAX)
            return err_set(err, ERR_INVALID, "'%s' of %s has %zu dimensions, at most %d", t->name, s->name, t->n_dims,
                           SHARD_DIMS_MAX);
    }
    return 0;
}

static void put_tensor(struct buf *out, const struct transfer_tensor *t, size_t mesh_dims)
{
    size_t len = strlen(t->name);
    put_u8(out, len & 0xff);
    put_u8(out, len >> 8);
    buf_append(out, t->name, len);
    put_u8(out, t->dtype);
    put_u8(out, t->n_dims);
    for (size_t d = 0; d < t->n_dims; d++) {
        char bytes[sizeof *t->shape];
        le_put_u64(bytes, t->shape[d]);
        buf_append(out, bytes, sizeof bytes);
    }
    for (size_t m = 0; m < mesh_dims; m++)
        put_u8(out, (uint8_t)(int8_t)t->split[m]);
}

int transfer_side_write(const struct transfer_side *s, struct buf *out, struct err *err)
{
    const struct mesh *mesh = s->mesh;
    int r = check_lengths(s, err);
    if (r < 0)
        return r;
    put_u32(out, (uint32_t)mesh->n_dims);
    for (size_t i = 0; i < mesh->n_dims; i++) {
        size_t len = MIN(strlen(mesh->dims[i].name), (size_t)MESH_NAME_MAX);
        put_u32(out, mesh->dims[i].size);
        put_u8(out, len);
        buf_append(out, mesh->dims[i].name, len);
    }
    put_u32(out, (uint32_t)s->n);
    for (size_t i = 0; i < s->n; i++)
        put_tensor(out, &s->tensors[i], mesh->n_dims);
    if (out->over || out->len > TRANSFER_SIDE_MAX)
        return err_set(err, ERR_LIMIT, "the names and shapes of the weights of %s have more than %d bytes", s->name,
                       TRANSFER_SIDE_MAX);
    return 0;
}

// Reads a value. `left`: bytes that are left. A value that is not there makes it `broken`.

struct side_reader {
    const char *at;
    size_t left;
    bool broken;
};

static const char *take(struct side_reader *r, size_t len)
{
    static const char nothing[UINT16_MAX + 1];
    if (len > r->left)
        r->broken = true;
    if (r->broken)
        return nothing;
    const char *at = r->at;
    r->at += len;
    r->left -= len;
    return at;
}

static uint8_t take_u8(struct side_reader *r)
{
    return (uint8_t)*take(r, 1);
}

static uint32_t take_u32(struct side_reader *r)
{
    return le_get_u32(take(r, sizeof(uint32_t)));
}

static const struct mesh *take_mesh(struct side_reader *r, const char *name, struct arena *a)
{
    uint32_t n = take_u32(r);
    struct mesh *mesh = arena_new(a, struct mesh);
    if (n > MESH_DIMS_MAX)
        r->broken = true;
    if (r->broken)
        return mesh;
    struct mesh_dim *dims = arena_array(a, n, sizeof *dims);
    uint64_t world = 1;
    for (uint32_t i = 0; i < n; i++) {
        dims[i].size = take_u32(r);
        size_t len = take_u8(r);
        dims[i].name = arena_strndup(a, take(r, len), len);
        world *= dims[i].size;
        if (!world || world > UINT32_MAX)
            r->broken = true;
        world = r->broken ? 1 : world;
    }
    *mesh = (struct mesh){name, dims, n};
    return mesh;
}

static void take_tensor(struct side_reader *r, size_t mesh_dims, struct arena *a, struct transfer_tensor *ret)
{
    size_t len = take_u8(r);
    len |= (size_t)take_u8(r) << 8;
    ret->name = arena_strndup(a, take(r, len), len);
    uint8_t dtype = take_u8(r);
    ret->n_dims = take_u8(r);
    if (dtype >= SAFETENSORS_DTYPE_COUNT || ret->n_dims > SHARD_DIMS_MAX)
        r->broken = true;
    if (r->broken)
        return;
    ret->dtype = (enum safetensors_dtype)dtype;
    uint64_t *shape = arena_array(a, ret->n_dims, sizeof *shape);
    int *split = arena_array(a, mesh_dims, sizeof *split);
    for (size_t d = 0; d < ret->n_dims; d++)
        shape[d] = le_get_u64(take(r, sizeof *shape));
    for (size_t m = 0; m < mesh_dims; m++)
        split[m] = (int8_t)take_u8(r);
    ret->shape = shape;
    ret->split = split;
}

int transfer_side_read(const char *data, size_t len, const char *name, struct arena *a, struct transfer_side *ret,
                       struct err *err)
{
    enum { TENSOR_MIN = 4 };
    struct side_reader r = {data, len, false};
    *ret = (struct transfer_side){.name = name, .mesh = take_mesh(&r, name, a)};
    uint32_t n = take_u32(&r);
    if (n > r.left / TENSOR_MIN)
        r.broken = true;
    if (!r.broken) {
        struct transfer_tensor *tensors = arena_array(a, n, sizeof *tensors);
        for (uint32_t i = 0; i < n && !r.broken; i++)
            take_tensor(&r, ret->mesh->n_dims, a, &tensors[i]);
        ret->tensors = tensors;
        ret->n = n;
    }
    if (r.broken || r.left)
        return err_set(err, ERR_PROTO, "%s does not say what weights it has", name);
    return 0;
}

void transfer_side_narrow(struct transfer_side *s, const char *const *names, size_t n, struct arena *a,
                          const char **ret_missing)
{
    struct map wanted = MAP_INIT;
    struct transfer_tensor *kept = arena_array(a, s->n, sizeof *kept);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        map_set(&wanted, names[i], (void *)names[i]);
    for (size_t i = 0; i < s->n; i++)
        if (map_get(&wanted, s->tensors[i].name))
            kept[n_kept++] = s->tensors[i];
    for (size_t i = 0; i < n_kept; i++)
        map_del(&wanted, kept[i].name);
    *ret_missing = NULL;
    for (size_t i = 0; i < n && !*ret_missing; i++)
        *ret_missing = map_get(&wanted, names[i]);
    map_done(&wanted);
    s->tensors = kept;
    s->n = n_kept;
}

uint32_t transfer_side_world(const struct transfer_side *s)
{
    uint32_t n = 1;
    for (size_t i = 0; i < s->mesh->n_dims; i++)
        n *= s->mesh->dims[i].size;
    return n;
}
