// SPDX-License-Identifier: Apache-2.0
// {"mode": 8, "world": 4, "meshes": [{"name": "m", "dims": [["dp", 2], ["tp", 2]]}], "split": ..., "collect": ...}.
// Whatever rule is accepted, each rank gets a piece that there is, no piece is lost, and a rank is kept once.
#include "common/base/mem.h"
#include "common/wire/dispatch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static uint32_t number(const struct json *v, uint32_t max)
{
    int64_t n;
    return json_i64(v, &n) && n >= 0 && n <= max ? (uint32_t)n : 0;
}

static size_t read_meshes(const struct json *list, struct mesh *meshes, size_t max, struct arena *a)
{
    size_t n = 0;
    JSON_FOREACH(m, list) {
        const struct json *dims = json_get(m, "dims");
        struct mesh_dim *d = arena_array(a, json_count(dims), sizeof *d);
        if (n == max)
            break;
        meshes[n].name = json_str(json_get(m, "name"), a);
        meshes[n].dims = d;
        meshes[n].n_dims = 0;
        JSON_FOREACH(dim, dims)
            d[meshes[n].n_dims++] =
                (struct mesh_dim){json_str(dim->child, a), number(dim->child ? dim->child->next : NULL, UINT32_MAX)};
        n += meshes[n].name != NULL;
    }
    return n;
}

static void check(const struct dispatch *d, struct arena *a)
{
    uint8_t *seen = arena_array(a, d->world + 1, 1), *kept = arena_array(a, d->world + 1, 1);
    for (uint32_t i = 0; i < d->world; i++) {
        must(d->piece_of[i] < d->n_pieces);
        seen[d->piece_of[i]] = 1;
    }
    must(d->n_pieces >= 1 && d->n_pieces <= d->world && d->n_keep >= 1);
    for (uint32_t i = 0; i < d->n_pieces; i++)
        must(seen[i]);
    for (uint32_t i = 0; i < d->n_keep; i++)
        must(d->keep[i] < d->world && !kept[d->keep[i]]++);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    struct mesh meshes[3];
    struct dispatch_rule rule;
    struct dispatch d;
    if (json_parse((const char *)data, size, NULL, &a, &root, &err) == 0) {
        uint32_t world = number(json_get(root, "world"), 1024) + 1, mode = number(json_get(root, "mode"), 255);
        size_t n = read_meshes(json_get(root, "meshes"), meshes, ARRAY_LEN(meshes), &a);
        int r = dispatch_rule_read(json_get(root, "split"), json_get(root, "collect"), &a, &rule, &err);
        if (r == 0)
            r = dispatch_make((enum record_dispatch)mode, &rule, meshes, n, world, &a, &d, &err);
        must(r == err.code && !r == !err.msg[0]);
        if (r == 0)
            check(&d, &a);
    }
    arena_done(&a);
    return 0;
}
