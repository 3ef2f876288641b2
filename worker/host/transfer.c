// SPDX-License-Identifier: Apache-2.0
// The functions of cadre/transfer.h.
#include "sdk/c/include/cadre/transfer.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/transfer/transfer_plan.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(CADRE_TRANSFER_DIMS_MAX == SHARD_DIMS_MAX, "the same limit");

struct cadre_transfer {
    struct arena arena;
    const char **problems;
    size_t n_problems;
    cadre_transfer_piece *pieces;
    size_t n;
};

static int find_dtype(const char *name, enum safetensors_dtype *ret)
{
    for (int i = 0; i < SAFETENSORS_DTYPE_COUNT; i++)
        if (str_eq(name, safetensors_dtype_name((enum safetensors_dtype)i))) {
            *ret = (enum safetensors_dtype)i;
            return 0;
        }
    return ERR_INVALID;
}

static const struct grid *mesh_of(const cadre_transfer_side *s, struct arena *a)
{
    struct grid_dim *dims = arena_array(a, s->n_dims, sizeof *dims);
    struct grid *g = arena_new(a, struct grid);
    for (size_t i = 0; i < s->n_dims; i++)
        dims[i] = (struct grid_dim){arena_printf(a, "%zu", i), s->mesh[i]};
    *g = (struct grid){s->name, dims, s->n_dims};
    return g;
}

static int read_side(const cadre_transfer_side *s, struct arena *a, struct transfer_side *ret, struct err *err)
{
    struct transfer_tensor *tensors = arena_array(a, s->n, sizeof *tensors);
    *ret = (struct transfer_side){s->name, mesh_of(s, a), tensors, s->n};
    if (s->n_dims > GRID_DIMS_MAX)
        return err_set(err, ERR_INVALID, "the mesh of %s has %zu dimensions, at most %d", s->name, s->n_dims,
                       GRID_DIMS_MAX);
    for (size_t i = 0; i < s->n; i++) {
        const cadre_transfer_tensor *t = &s->tensors[i];
        tensors[i] = (struct transfer_tensor){t->name, 0, t->shape, t->n_dims, t->split};
        if (find_dtype(t->dtype, &tensors[i].dtype) < 0)
            return err_set(err, ERR_INVALID, "%s of %s has the dtype %s, which there is not", t->name, s->name,
                           t->dtype);
        if (t->n_dims > SHARD_DIMS_MAX)
            return err_set(err, ERR_INVALID, "%s of %s has %zu dimensions, at most %d", t->name, s->name, t->n_dims,
                           SHARD_DIMS_MAX);
    }
    return 0;
}

static void copy_pieces(cadre_transfer *t, const struct transfer_plan *p)
{
    t->pieces = arena_array(&t->arena, p->n, sizeof *t->pieces);
    t->n = p->n;
    for (size_t i = 0; i < p->n; i++) {
        const struct transfer_piece *from = &p->pieces[i];
        cadre_transfer_piece *to = &t->pieces[i];
        *to = (cadre_transfer_piece){from->from, from->to, (uint32_t)from->source, (uint32_t)from->destination,
                                     .bytes = from->bytes};
        memcpy(to->first, from->part.from, sizeof to->first);
        memcpy(to->end, from->part.to, sizeof to->end);
    }
}

cadre_transfer *cadre_transfer_plan(const cadre_transfer_side *from, const cadre_transfer_side *to, uint64_t piece_max)
{
    cadre_transfer *t = xcalloc(1, sizeof *t);
    struct transfer_side sides[2];
    struct transfer_plan plan = {0};
    struct err err = ERR_INIT;
    arena_init(&t->arena, 0);
    int r = read_side(from, &t->arena, &sides[0], &err);
    if (r == 0)
        r = read_side(to, &t->arena, &sides[1], &err);
    if (r == 0)
        r = transfer_plan(&sides[0], &sides[1], piece_max, &t->arena, &plan, &err);
    if (r == 0) {
        copy_pieces(t, &plan);
    } else if (plan.n_mismatches) {
        t->problems = plan.mismatches;
        t->n_problems = plan.n_mismatches;
    } else {
        t->problems = arena_array(&t->arena, 1, sizeof *t->problems);
        t->problems[t->n_problems++] = arena_strdup(&t->arena, err.msg);
    }
    return t;
}

const char *cadre_transfer_problem(const cadre_transfer *t, size_t i)
{
    return i < t->n_problems ? t->problems[i] : NULL;
}

const cadre_transfer_piece *cadre_transfer_pieces(const cadre_transfer *t, size_t *ret_n)
{
    *ret_n = t->n;
    return t->pieces;
}

void cadre_transfer_block(const cadre_transfer_side *side, size_t tensor, uint32_t rank, uint64_t *first, uint64_t *end)
{
    struct arena a = ARENA_INIT;
    struct shard s;
    const cadre_transfer_tensor *t = &side->tensors[tensor];
    shard_of_rank(mesh_of(side, &a), t->split, rank, t->shape, t->n_dims, &s);
    memcpy(first, s.from, t->n_dims * sizeof *first);
    memcpy(end, s.to, t->n_dims * sizeof *end);
    arena_done(&a);
}

void cadre_transfer_free(cadre_transfer *t)
{
    if (t)
        arena_done(&t->arena);
    free(t);
}
