// SPDX-License-Identifier: Apache-2.0
#include "common/wire/dispatch.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/mode.h"

#include <stdlib.h>

static const struct mesh *mesh_by_name(const struct mesh *meshes, size_t n, const char *name, size_t otherwise,
                                       struct err *err)
{
    for (size_t i = 0; name && i < n; i++)
        if (str_eq(meshes[i].name, name))
            return &meshes[i];
    if (!name && otherwise < n)
        return &meshes[otherwise];
    if (name)
        err_set(err, ERR_NOT_FOUND, "the group has no mesh '%.64s'; spec.worker.meshes names its meshes", name);
    else
        err_set(err, ERR_NOT_FOUND, "the call needs %s, the group has %zu in spec.worker.meshes",
                otherwise ? "two meshes, one to train and one to generate" : "a mesh", n);
    return NULL;
}

static uint32_t *one_each(uint32_t world, struct arena *a)
{
    uint32_t *list = arena_array(a, world, sizeof *list);
    for (uint32_t i = 0; i < world; i++)
        list[i] = i;
    return list;
}

static void to_all(struct dispatch *d, struct arena *a)
{
    d->n_pieces = 1;
    d->piece_of = arena_array(a, d->world, sizeof *d->piece_of); // zeros
}

static void from_all(struct dispatch *d, struct arena *a)
{
    d->keep = one_each(d->world, a);
    d->n_keep = d->world;
}

// The inputs of a mode's rule.
struct plan_input {
    const struct dispatch_rule *rule; // from the head; never NULL
    const struct mesh *meshes;
    size_t n_meshes;
    struct arena *arena;
};

static int plan_same(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    (void)err;
    to_all(d, in->arena);
    from_all(d, in->arena);
    return 0;
}

static int plan_each(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    (void)err;
    d->n_pieces = d->world;
    d->piece_of = one_each(d->world, in->arena);
    from_all(d, in->arena);
    return 0;
}

// The number of the piece over these dimensions; the first one varies slowest. A dimension that the mesh lacks (-1) has
// size 1.
static void over_dims(struct dispatch *d, const struct mesh *mesh, const int *dims, size_t n, struct arena *a)
{
    uint32_t *piece_of = arena_array(a, d->world, sizeof *piece_of);
    d->n_pieces = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = dims[i] < 0 ? 1 : mesh->dims[dims[i]].size;
        d->n_pieces *= size;
        for (uint32_t rank = 0; rank < d->world; rank++)
            piece_of[rank] = piece_of[rank] * size + mesh_at(mesh, rank, dims[i]);
    }
    d->piece_of = piece_of;
}

struct ordered_rank {
    uint32_t group, rest, rank; // sorted by these, in this order
};

static int by_order(const void *a, const void *b)
{
    const struct ordered_rank *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->rest != y->rest)
        return x->rest < y->rest ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

// Sorts the ranks whose results the client gets into the order of their pieces.
static void sort_kept(struct dispatch *d, uint32_t *keep, struct arena *a)
{
    struct ordered_rank *order = arena_array(a, d->n_keep, sizeof *order);
    for (uint32_t i = 0; i < d->n_keep; i++)
        order[i] = (struct ordered_rank){d->piece_of[keep[i]], 0, keep[i]};
    qsort(order, d->n_keep, sizeof *order, by_order);
    for (uint32_t i = 0; i < d->n_keep; i++)
        keep[i] = order[i].rank;
}

struct want {
    int dim; // of the mesh; -1 = the mesh lacks it, and every rank matches
    uint32_t at;
};

static void from_those_at(struct dispatch *d, const struct mesh *mesh, const struct want *want, size_t n, bool sort,
                          struct arena *a)
{
    uint32_t *keep = arena_array(a, d->world, sizeof *keep);
    for (uint32_t rank = 0; rank < d->world; rank++) {
        bool at = true;
        for (size_t i = 0; i < n; i++)
            at = at && mesh_at(mesh, rank, want[i].dim) == want[i].at;
        if (at)
            keep[d->n_keep++] = rank;
    }
    if (sort)
        sort_kept(d, keep, a);
    d->keep = keep;
}

static int check_3d(const struct mesh *mesh, struct err *err)
{
    static const char *const known[] = {"pp", "dp", "cp", "tp"};
    for (size_t i = 0; i < mesh->n_dims; i++) {
        bool is_known = mesh->dims[i].size == 1;
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            is_known = is_known || str_eq(mesh->dims[i].name, known[k]);
        if (!is_known)
            return err_set(err, ERR_INVALID,
                           "the 3D modes know the dimensions pp, dp, cp and tp, mesh '%s' has '%s', too: use mode "
                           "SPLIT with `split` and `collect`",
                           mesh->name, mesh->dims[i].name);
    }
    return 0;
}

struct three_d { // the index of these dimensions in a mesh, -1 = it lacks the dimension
    const struct mesh *mesh;
    int dp;
    struct want first, context, stage, replica; // of tp, cp, pp (the last one), dp
};

static int look_3d(const struct plan_input *in, struct three_d *ret, struct err *err)
{
    const struct mesh *mesh = mesh_by_name(in->meshes, in->n_meshes, in->rule->split_mesh, 0, err);
    if (!mesh)
        return err->code;
    int dp = mesh_find(mesh, "dp"), pp = mesh_find(mesh, "pp");
    *ret = (struct three_d){.mesh = mesh,
                            .dp = dp,
                            .first = {mesh_find(mesh, "tp"), 0},
                            .context = {mesh_find(mesh, "cp"), 0},
                            .stage = {pp, pp < 0 ? 0 : mesh->dims[pp].size - 1},
                            .replica = {dp, 0}};
    return check_3d(mesh, err);
}

static int plan_replica(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    struct three_d m = {0};
    int r = look_3d(in, &m, err);
    if (r < 0)
        return r;
    over_dims(d, m.mesh, &m.dp, 1, in->arena);
    from_those_at(d, m.mesh, (const struct want[]){m.first, m.context, m.stage}, 3, true, in->arena);
    return 0;
}

static int plan_stage(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    struct three_d m = {0};
    int r = look_3d(in, &m, err);
    if (r < 0)
        return r;
    to_all(d, in->arena);
    from_those_at(d, m.mesh, (const struct want[]){m.first, m.context, m.replica}, 3, true, in->arena);
    return 0;
}

// Coordinate in everything but pp and tp, as one number.
static uint32_t rest_of(const struct mesh *mesh, uint32_t rank)
{
    uint32_t rest = 0;
    for (size_t i = 0; i < mesh->n_dims; i++)
        if (!str_eq(mesh->dims[i].name, "pp") && !str_eq(mesh->dims[i].name, "tp"))
            rest = rest * mesh->dims[i].size + mesh_at(mesh, rank, (int)i);
    return rest;
}

static struct ordered_rank *micro_groups(const struct mesh *train, const struct mesh *generation, uint32_t world,
                                         struct arena *a)
{
    struct ordered_rank *order = arena_array(a, world, sizeof *order);
    int cp = mesh_find(train, "cp"), dp = mesh_find(train, "dp");
    for (uint32_t rank = 0; rank < world; rank++)
        order[rank] =
            (struct ordered_rank){mesh_at(train, rank, cp) * mesh_size(train, "dp") + mesh_at(train, rank, dp),
                                  rest_of(generation, rank), rank};
    qsort(order, world, sizeof *order, by_order);
    return order;
}

static int plan_micro(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    struct arena *a = in->arena;
    const struct mesh *train = mesh_by_name(in->meshes, in->n_meshes, in->rule->split_mesh, 0, err), *generation;
    if (!train || !(generation = mesh_by_name(in->meshes, in->n_meshes, in->rule->collect_mesh, 1, err)) ||
        check_3d(train, err) < 0)
        return err->code;
    int pp = mesh_find(generation, "pp"), tp = mesh_find(generation, "tp");
    uint32_t size = mesh_size(generation, "pp") * mesh_size(generation, "tp");
    const struct ordered_rank *order = micro_groups(train, generation, d->world, a);
    uint32_t *piece_of = arena_array(a, d->world, sizeof *piece_of), *keep = arena_array(a, d->world, sizeof *keep);
    for (uint32_t i = 0, n; i < d->world; i += n) {
        for (n = 0; i + n < d->world && order[i + n].group == order[i].group && order[i + n].rest == order[i].rest;
             n++) {
            uint32_t rank = order[i + n].rank;
            piece_of[rank] = d->n_pieces;
            if (mesh_at(generation, rank, pp) == 0 && mesh_at(generation, rank, tp) == 0)
                keep[d->n_keep++] = rank;
        }
        if (n != size)
            return err_set(err, ERR_INVALID,
                           "meshes '%s' and '%s' do not fit: the %u ranks that generate with rank %u (pp times tp of "
                           "'%s') are not all in one replica of '%s', which has %u (pp times tp)",
                           train->name, generation->name, size, order[i].rank, generation->name, train->name,
                           mesh_size(train, "pp") * mesh_size(train, "tp"));
        d->n_pieces++;
    }
    d->piece_of = piece_of;
    d->keep = keep;
    return 0;
}

static int over_named(struct dispatch *d, const struct dispatch_rule *rule, const struct mesh *mesh, struct arena *a,
                      struct err *err)
{
    int dims[MESH_DIMS_MAX];
    for (size_t i = 0; i < rule->n_dims; i++) {
        int dim = mesh_find(mesh, rule->dims[i]);
        if (dim < 0)
            return err_set(err, ERR_NOT_FOUND, "split: mesh '%s' has no dimension '%.64s'", mesh->name, rule->dims[i]);
        for (size_t k = 0; k < i; k++)
            if (dims[k] == dim)
                return err_set(err, ERR_INVALID, "split names dimension '%s' twice", mesh->dims[dim].name);
        dims[i] = dim;
    }
    over_dims(d, mesh, dims, rule->n_dims, a);
    return 0;
}

static int by_index(struct dispatch *d, const struct dispatch_rule *rule, struct arena *a, struct err *err)
{
    bool *used = arena_array(a, d->world, sizeof *used);
    if (rule->n_index != d->world)
        return err_set(err, ERR_INVALID, "split.index has %zu elements, the group has %u ranks", rule->n_index,
                       d->world);
    for (uint32_t i = 0; i < d->world; i++) {
        if (rule->index[i] >= d->world)
            return err_set(err, ERR_INVALID,
                           "split.index: rank %u gets piece %u, but there are at most as many pieces as ranks", i,
                           rule->index[i]);
        used[rule->index[i]] = true;
        d->n_pieces = MAX(d->n_pieces, rule->index[i] + 1);
    }
    for (uint32_t i = 0; i < d->n_pieces; i++)
        if (!used[i])
            return err_set(err, ERR_INVALID, "split.index: no rank gets piece %u, which would be lost", i);
    d->piece_of = arena_memdup(a, rule->index, d->world * sizeof *d->piece_of); // the plan may outlive the rule
    return 0;
}

static int from_named(struct dispatch *d, const struct dispatch_rule *rule, const struct mesh *mesh, struct arena *a,
                      struct err *err)
{
    struct want want[MESH_DIMS_MAX] = {0};
    for (size_t i = 0; i < rule->n_at; i++) {
        const struct dispatch_at *at = &rule->at[i];
        int dim = mesh_find(mesh, at->dim);
        if (dim < 0)
            return err_set(err, ERR_NOT_FOUND, "collect: mesh '%s' has no dimension '%.64s'", mesh->name, at->dim);
        for (size_t k = 0; k < i; k++)
            if (want[k].dim == dim)
                return err_set(err, ERR_INVALID, "collect names dimension '%s' twice", mesh->dims[dim].name);
        int64_t size = mesh->dims[dim].size;
        if (at->index >= size || at->index < -size)
            return err_set(err, ERR_INVALID,
                           "collect: dimension '%s' of mesh '%s' has %lld coordinates, and %lld is not one of them",
                           mesh->dims[dim].name, mesh->name, (long long)size, (long long)at->index);
        want[i] = (struct want){dim, (uint32_t)(at->index < 0 ? at->index + size : at->index)};
    }
    from_those_at(d, mesh, want, rule->n_at, !rule->index, a);
    return 0;
}

static int from_ranks(struct dispatch *d, const struct dispatch_rule *rule, struct arena *a, struct err *err)
{
    bool *used = arena_array(a, d->world, sizeof *used);
    for (size_t i = 0; i < rule->n_ranks; i++) {
        if (rule->ranks[i] >= d->world)
            return err_set(err, ERR_INVALID, "collect.ranks: there is no rank %u, the group has %u", rule->ranks[i],
                           d->world);
        if (used[rule->ranks[i]])
            return err_set(err, ERR_INVALID, "collect.ranks has rank %u twice", rule->ranks[i]);
        used[rule->ranks[i]] = true;
    }
    d->keep = arena_memdup(a, rule->ranks, rule->n_ranks * sizeof *d->keep);
    d->n_keep = (uint32_t)rule->n_ranks;
    return 0;
}

static int plan_custom(struct dispatch *d, const struct plan_input *in, struct err *err)
{
    const struct dispatch_rule *rule = in->rule;
    const struct mesh *mesh = NULL;
    int r = 0;
    if ((rule->dims || rule->at) && !(mesh = mesh_by_name(in->meshes, in->n_meshes, rule->split_mesh, 0, err)))
        return err->code;
    if (rule->dims) {
        r = over_named(d, rule, mesh, in->arena, err);
    } else if (rule->index) {
        r = by_index(d, rule, in->arena, err);
    } else {
        d->form = MODE_WHOLE;
        to_all(d, in->arena);
    }
    if (r == 0 && rule->at && rule->collect_mesh &&
        !(mesh = mesh_by_name(in->meshes, in->n_meshes, rule->collect_mesh, 0, err)))
        return err->code;
    if (r < 0)
        return r;
    if (rule->at)
        return from_named(d, rule, mesh, in->arena, err);
    if (rule->ranks)
        return from_ranks(d, rule, in->arena, err);
    uint32_t *keep = one_each(d->world, in->arena);
    d->n_keep = d->world;
    if (!rule->index)
        sort_kept(d, keep, in->arena);
    d->keep = keep;
    return 0;
}

static int check_rule(const struct dispatch_mode *m, const struct dispatch_rule *rule, struct err *err)
{
    bool pieces = rule->dims || rule->index || rule->at || rule->ranks;
    if (m->takes == MODE_MESHES && pieces)
        return err_set(err, ERR_INVALID,
                       "the 3D modes use only `mesh`, `elements` and `join` of `split` and `collect`; for other "
                       "members, use SPLIT");
    if (m->takes == MODE_NOTHING && (pieces || rule->split_mesh || rule->collect_mesh || rule->elements || rule->join))
        return err_set(err, ERR_INVALID, "`split` and `collect` need dispatch mode SPLIT or a 3D mode");
    return 0;
}

// If the pieces are elements, results need not be batches: they are joined only if the call asks for it.
static void apply_forms(struct dispatch *d, const struct dispatch_rule *rule)
{
    if (rule->elements && d->form == MODE_ROWS) {
        d->form = MODE_ELEMENTS;
        d->join = false;
    }
    if (rule->join)
        d->join = rule->join == DISPATCH_JOIN;
}

#define X(name, number, rule, ...) [number] = plan_##rule,
static int (*const rules[RECORD_DISPATCH_COUNT])(struct dispatch *d, const struct plan_input *in,
                                                 struct err *err) = {CADRE_DISPATCH_MODES(X)};
#undef X

int dispatch_make(enum record_dispatch mode, const struct dispatch_rule *rule, const struct mesh *meshes,
                  size_t n_meshes, uint32_t world, struct arena *a, struct dispatch *ret, struct err *err)
{
    static const struct dispatch_rule none = {0};
    const struct dispatch_mode *m = mode_of(mode);
    const struct plan_input in = {rule ? rule : &none, meshes, n_meshes, a};
    if (!m)
        return err_set(err, ERR_INVALID, "there is no dispatch mode %d", (int)mode);
    *ret = (struct dispatch){.world = world, .form = m->pieces, .join = m->results == MODE_JOINED};
    int r = check_rule(m, in.rule, err);
    for (size_t i = 0; i < n_meshes && r == 0; i++)
        r = mesh_check(&meshes[i], world, err);
    if (r == 0)
        r = rules[mode](ret, &in, err);
    if (r == 0)
        apply_forms(ret, in.rule);
    return r;
}
