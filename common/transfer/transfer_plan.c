// SPDX-License-Identifier: Apache-2.0
#include "common/transfer/transfer_plan.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One dimension of a tensor on the senders' side: its parts, and which ranks have them.
struct axis {
    uint64_t *from, *to;
    uint32_t *rank; // the share of this dimension in the sender's rank
    size_t n;
};

struct receiver {
    uint32_t rank;
    struct transfer_place place;
    uint64_t relays;   // bytes
    struct shard want; // of the tensor at hand
    bool over;         // the tensor at hand is planned for it
};

struct planner {
    const struct transfer_side *from, *to;
    uint64_t piece_max;
    struct arena *arena;
    struct transfer_plan *plan;
    // Not sorted yet. Not in the arena: there may be millions, and the arena would keep each array that they outgrow.
    struct transfer_piece *pieces;
    size_t room;
    uint64_t *load; // bytes that each sender sends
    uint32_t n_from, n_to;
    struct receiver *receivers; // sorted by node, and by pod within a node
    // of the tensor at hand
    size_t source, destination;
    struct axis axes[SHARD_DIMS_MAX];
    uint32_t *replicas; // offsets from a sender's rank to each rank that has the same block
    uint32_t n_replicas;
    // of the block at hand
    struct receiver **takers; // all on one node
    size_t n_takers;
};

static uint32_t stride_of(const struct mesh *mesh, size_t dim)
{
    uint32_t n = 1;
    for (size_t i = dim + 1; i < mesh->n_dims; i++)
        n *= mesh->dims[i].size;
    return n;
}

// Mismatches

static void mismatch(struct planner *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void mismatch(struct planner *p, const char *fmt, ...)
{
    struct transfer_plan *plan = p->plan;
    va_list ap;
    if (plan->n_mismatches == TRANSFER_MISMATCHES_MAX)
        return;
    if (!plan->mismatches)
        plan->mismatches = arena_array(p->arena, TRANSFER_MISMATCHES_MAX, sizeof *plan->mismatches);
    va_start(ap, fmt);
    plan->mismatches[plan->n_mismatches++] = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
}

static const char *print_shape(struct arena *a, const struct transfer_tensor *t)
{
    const char *text = "";
    for (size_t d = 0; d < t->n_dims; d++)
        text = arena_printf(a, "%s%s%" PRIu64, text, d ? ", " : "", t->shape[d]);
    return arena_printf(a, "(%s)", text);
}

static int by_name(const void *a, const void *b)
{
    const struct transfer_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static const struct transfer_tensor **sort_tensors(const struct transfer_side *side, struct arena *a)
{
    const struct transfer_tensor **sorted = arena_array(a, side->n, sizeof *sorted);
    for (size_t i = 0; i < side->n; i++)
        sorted[i] = &side->tensors[i];
    qsort(sorted, side->n, sizeof *sorted, by_name);
    return sorted;
}

// False: the tensor is not valid by itself.
static bool check_tensor(struct planner *p, const struct transfer_side *side, const struct transfer_tensor *t)
{
    size_t before = p->plan->n_mismatches;
    if (t->n_dims > SHARD_DIMS_MAX) {
        mismatch(p, "'%s' has %zu dimensions in %s; at most %d are possible", t->name, t->n_dims, side->name,
                 SHARD_DIMS_MAX);
        return false;
    }
    if (safetensors_dtype_bits(t->dtype) % 8)
        mismatch(p, "'%s' has dtype %s in %s; elements of less than a byte cannot be split", t->name,
                 safetensors_dtype_name(t->dtype), side->name);
    struct safetensors_tensor whole = {t->name, t->dtype, t->n_dims, t->shape, 0, 0};
    struct err ignored = ERR_INIT;
    size_t size;
    if (safetensors_size(&whole, &size, &ignored) == ERR_LIMIT)
        mismatch(p, "'%s' has shape %s in %s, which is too large", t->name, print_shape(p->arena, t), side->name);
    for (size_t m = 0; m < side->mesh->n_dims; m++)
        if (t->split[m] < -1 || t->split[m] >= (int)t->n_dims)
            mismatch(p, "'%s' has %zu dimensions in %s, and dimension '%s' of the mesh splits number %d of them",
                     t->name, t->n_dims, side->name, side->mesh->dims[m].name, t->split[m]);
    return p->plan->n_mismatches == before;
}

static void compare(struct planner *p, const struct transfer_tensor *a, const struct transfer_tensor *b)
{
    if (!check_tensor(p, p->from, a) | !check_tensor(p, p->to, b))
        return;
    if (a->dtype != b->dtype)
        mismatch(p, "'%s' has dtype %s in %s and %s in %s", a->name, safetensors_dtype_name(a->dtype), p->from->name,
                 safetensors_dtype_name(b->dtype), p->to->name);
    if (a->n_dims != b->n_dims || (a->n_dims && memcmp(a->shape, b->shape, a->n_dims * sizeof *a->shape) != 0))
        mismatch(p, "'%s' has shape %s in %s and %s in %s", a->name, print_shape(p->arena, a), p->from->name,
                 print_shape(p->arena, b), p->to->name);
}

static void check_twice(struct planner *p, const struct transfer_side *side, const struct transfer_tensor **sorted)
{
    for (size_t i = 1; i < side->n; i++)
        if (str_eq(sorted[i - 1]->name, sorted[i]->name))
            mismatch(p, "'%s' occurs twice in %s", sorted[i]->name, side->name);
}

// Pairs the tensors of both sides: `pairs` gets the receivers' tensor for each tensor of the senders.
static int match(struct planner *p, const struct transfer_tensor **pairs, struct err *err)
{
    const struct transfer_tensor **a = sort_tensors(p->from, p->arena), **b = sort_tensors(p->to, p->arena);
    size_t i = 0, k = 0;
    check_twice(p, p->from, a);
    check_twice(p, p->to, b);
    while (i < p->from->n || k < p->to->n) {
        int order = i == p->from->n ? 1 : k == p->to->n ? -1 : strcmp(a[i]->name, b[k]->name);
        if (order < 0) {
            mismatch(p, "'%s' is in %s and not in %s", a[i++]->name, p->from->name, p->to->name);
        } else if (order > 0) {
            mismatch(p, "'%s' is in %s and not in %s", b[k++]->name, p->to->name, p->from->name);
        } else {
            compare(p, a[i], b[k]);
            pairs[a[i++] - p->from->tensors] = b[k++];
        }
    }
    size_t n = p->plan->n_mismatches;
    if (!n)
        return 0;
    return err_set(err, ERR_INVALID, "nothing is sent from %s to %s, because tensors do not match (%zu%s): %s%s",
                   p->from->name, p->to->name, n, n == TRANSFER_MISMATCHES_MAX ? " or more" : "",
                   p->plan->mismatches[0], n > 1 ? "; ..." : "");
}

// Which ranks have which blocks

static void cut_axis(struct planner *p, const struct transfer_tensor *t, size_t dim)
{
    const struct mesh *mesh = p->from->mesh;
    struct axis *x = &p->axes[dim];
    x->n = 1;
    for (size_t m = 0; m < mesh->n_dims; m++)
        x->n *= t->split[m] == (int)dim ? mesh->dims[m].size : 1;
    for (size_t i = 0; i < x->n; i++) {
        size_t left = i, below = x->n;
        x->from[i] = 0;
        x->to[i] = t->shape[dim];
        x->rank[i] = 0;
        for (size_t m = 0; m < mesh->n_dims; m++) {
            if (t->split[m] != (int)dim)
                continue;
            below /= mesh->dims[m].size;
            shard_narrow(&x->from[i], &x->to[i], left / below, mesh->dims[m].size);
            x->rank[i] += (uint32_t)(left / below) * stride_of(mesh, m);
            left %= below;
        }
    }
}

static void find_replicas(struct planner *p, const struct transfer_tensor *t)
{
    const struct mesh *mesh = p->from->mesh;
    p->n_replicas = 1;
    for (size_t m = 0; m < mesh->n_dims; m++)
        p->n_replicas *= t->split[m] < 0 ? mesh->dims[m].size : 1;
    for (uint32_t i = 0; i < p->n_replicas; i++) {
        uint32_t left = i;
        p->replicas[i] = 0;
        for (size_t m = mesh->n_dims; m-- > 0;) {
            if (t->split[m] >= 0)
                continue;
            p->replicas[i] += left % mesh->dims[m].size * stride_of(mesh, m);
            left /= mesh->dims[m].size;
        }
    }
}

// Which ranks send which blocks

static struct transfer_place place_of(const struct transfer_side *side, uint32_t rank)
{
    return side->places ? side->places[rank] : (struct transfer_place){0, 0};
}

enum distance { SAME_POD, SAME_NODE, ELSEWHERE };

static enum distance distance(struct transfer_place a, struct transfer_place b)
{
    return a.pod == b.pod ? SAME_POD : a.node == b.node ? SAME_NODE : ELSEWHERE;
}

static enum distance distance_to(const struct planner *p, uint32_t sender, const struct receiver *to)
{
    return distance(place_of(p->from, sender), to->place);
}

// The nearest of the ranks that have the same block as `first`. If several are equally near, the one that has sent
// least.
static uint32_t best_sender(const struct planner *p, uint32_t first, const struct receiver *to)
{
    uint32_t best = first + p->replicas[to->rank % p->n_replicas];
    for (uint32_t i = 1; i < p->n_replicas; i++) {
        uint32_t rank = first + p->replicas[(to->rank + i) % p->n_replicas];
        enum distance is = distance_to(p, rank, to), was = distance_to(p, best, to);
        if (is < was || (is == was && p->load[rank] < p->load[best]))
            best = rank;
    }
    return best;
}

// The receiver that has relayed most, if it is at most a piece ahead of the others.
static struct receiver *best_relay(const struct planner *p, struct receiver *const *some, size_t n)
{
    uint64_t least = UINT64_MAX;
    struct receiver *best = NULL;
    for (size_t i = 0; i < n; i++)
        least = MIN(least, some[i]->relays);
    for (size_t i = 0; i < n; i++)
        if (some[i]->relays - least <= p->piece_max && (!best || some[i]->relays > best->relays))
            best = some[i];
    return best;
}

// A portion of the block at hand, which all takers get.
struct portion {
    uint32_t sender; // one of the ranks that have it
    const struct shard *part;
    uint64_t bytes;
};

static int add_piece(struct planner *p, const struct portion *what, struct transfer_piece piece, struct err *err)
{
    struct transfer_plan *plan = p->plan;
    if (plan->n == TRANSFER_PIECES_MAX)
        return err_set(err, ERR_LIMIT,
                       "from %s to %s there are more than %d pieces; allow larger ones, or send fewer "
                       "tensors at a time",
                       p->from->name, p->to->name, TRANSFER_PIECES_MAX);
    if (plan->n == p->room) {
        p->room = MAX((size_t)64, p->room * 2);
        p->pieces = xrealloc(p->pieces, p->room, sizeof *p->pieces);
    }
    piece.destination = p->destination;
    piece.part = *what->part;
    piece.bytes = what->bytes;
    p->pieces[plan->n++] = piece;
    plan->bytes += what->bytes;
    return 0;
}

static int add_sent(struct planner *p, const struct portion *what, const struct receiver *to, struct err *err)
{
    uint32_t from = best_sender(p, what->sender, to);
    p->load[from] += what->bytes;
    return add_piece(p, what, (struct transfer_piece){.from = from, .to = to->rank, .source = p->source}, err);
}

// `first`: the piece with which the relay gets these bytes.
static int add_relayed(struct planner *p, const struct portion *what, struct receiver *from, size_t first,
                       const struct receiver *to, struct err *err)
{
    from->relays += what->bytes;
    return add_piece(p, what,
                     (struct transfer_piece){
                         .from = p->n_from + from->rank, .to = to->rank, .source = p->destination, .first = first},
                     err);
}

static int supply_pod(struct planner *p, const struct portion *what, struct receiver *const *some, size_t n,
                      struct receiver *head, size_t first, struct err *err)
{
    bool in_pod = distance_to(p, best_sender(p, what->sender, some[0]), some[0]) == SAME_POD;
    bool has_head = head && distance(head->place, some[0]->place) == SAME_POD;
    struct receiver *entry = in_pod ? NULL : has_head ? head : best_relay(p, some, n);
    int r = 0;
    if (entry && entry != head) {
        r = head ? add_relayed(p, what, head, first, entry, err) : add_sent(p, what, entry, err);
        first = p->plan->n - 1;
    }
    for (size_t i = 0; r == 0 && i < n; i++)
        if (some[i] != entry)
            r = entry ? add_relayed(p, what, entry, first, some[i], err) : add_sent(p, what, some[i], err);
    return r;
}

static int supply(struct planner *p, const struct portion *what, struct err *err)
{
    struct receiver **takers = p->takers, *head = NULL;
    int r = 0;
    if (distance_to(p, best_sender(p, what->sender, takers[0]), takers[0]) == ELSEWHERE) {
        head = best_relay(p, takers, p->n_takers);
        r = add_sent(p, what, head, err);
    }
    size_t first = p->plan->n - 1; // of the head
    for (size_t i = 0, n; r == 0 && i < p->n_takers; i += n) {
        for (n = 1; i + n < p->n_takers && takers[i + n]->place.pod == takers[i]->place.pod;)
            n++;
        r = supply_pod(p, what, takers + i, n, head, first, err);
    }
    return r;
}

// Splits along the first dimension that has more than fits, then along the next. So each piece is one run, as long as
// possible.
static int split(struct planner *p, uint32_t first, const struct shard *part, size_t dim, size_t item, struct err *err)
{
    uint64_t bytes = shard_elements(part) * item;
    if (!p->piece_max || bytes <= p->piece_max || dim == part->n_dims)
        return supply(p, &(struct portion){first, part, bytes}, err);
    uint64_t len = part->to[dim] - part->from[dim], rows = MAX(p->piece_max / (bytes / len), (uint64_t)1);
    int r = 0;
    for (uint64_t at = part->from[dim]; r == 0 && at < part->to[dim]; at += rows) {
        struct shard some = *part;
        some.from[dim] = at;
        some.to[dim] = MIN(at + rows, part->to[dim]);
        r = split(p, first, &some, dim + 1, item, err);
    }
    return r;
}

// Gets `want` from all senders that have a part of it, dimension by dimension.
static int gather(struct planner *p, const struct shard *want, size_t dim, uint32_t first, struct shard *part,
                  size_t item, struct err *err)
{
    const struct axis *x = &p->axes[dim];
    int r = 0;
    if (dim == want->n_dims)
        return split(p, first, part, 0, item, err);
    for (size_t i = 0; r == 0 && i < x->n; i++) {
        part->from[dim] = MAX(want->from[dim], x->from[i]);
        part->to[dim] = MIN(want->to[dim], x->to[i]);
        if (part->from[dim] < part->to[dim])
            r = gather(p, want, dim + 1, first + x->rank[i], part, item, err);
    }
    return r;
}

// Finds the receivers on the node of receiver `at`, from `at` on, that want the same block. `at` is the first of them.
static void find_takers(struct planner *p, uint32_t at)
{
    const struct receiver *first = &p->receivers[at];
    p->n_takers = 0;
    for (uint32_t i = at; i < p->n_to && p->receivers[i].place.node == first->place.node; i++) {
        struct receiver *one = &p->receivers[i];
        if (one->over || memcmp(&one->want, &first->want, sizeof one->want) != 0)
            continue;
        one->over = true;
        p->takers[p->n_takers++] = one;
    }
}

static int plan_tensor(struct planner *p, const struct transfer_tensor *a, const struct transfer_tensor *b,
                       struct err *err)
{
    int r = 0;
    p->source = (size_t)(a - p->from->tensors);
    p->destination = (size_t)(b - p->to->tensors);
    for (size_t d = 0; d < a->n_dims; d++)
        cut_axis(p, a, d);
    find_replicas(p, a);
    for (uint32_t i = 0; i < p->n_to; i++) {
        shard_of_rank(p->to->mesh, b->split, p->receivers[i].rank, b->shape, b->n_dims, &p->receivers[i].want);
        p->receivers[i].over = false;
    }
    for (uint32_t i = 0; r == 0 && i < p->n_to; i++) {
        struct shard part = {.n_dims = a->n_dims};
        if (p->receivers[i].over)
            continue;
        find_takers(p, i);
        r = gather(p, &p->receivers[i].want, 0, 0, &part, safetensors_dtype_bits(a->dtype) / 8, err);
    }
    return r;
}

static int by_place(const void *x, const void *y)
{
    const struct receiver *a = x, *b = y;
    if (a->place.node != b->place.node)
        return a->place.node < b->place.node ? -1 : 1;
    if (a->place.pod != b->place.pod)
        return a->place.pod < b->place.pod ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

// Allocates room that all tensors share: there may be a million of them.
static void find_senders(struct planner *p)
{
    p->n_from = transfer_side_world(p->from);
    p->load = arena_array(p->arena, p->n_from, sizeof *p->load);
    p->replicas = arena_array(p->arena, p->n_from, sizeof *p->replicas);
    for (size_t d = 0; d < SHARD_DIMS_MAX; d++)
        p->axes[d] = (struct axis){.from = arena_array(p->arena, p->n_from, sizeof(uint64_t)),
                                   .to = arena_array(p->arena, p->n_from, sizeof(uint64_t)),
                                   .rank = arena_array(p->arena, p->n_from, sizeof(uint32_t))};
}

static void find_receivers(struct planner *p)
{
    p->n_to = transfer_side_world(p->to);
    p->receivers = arena_array(p->arena, p->n_to, sizeof *p->receivers);
    p->takers = arena_array(p->arena, p->n_to, sizeof(struct receiver *));
    for (uint32_t i = 0; i < p->n_to; i++)
        p->receivers[i] = (struct receiver){.rank = i, .place = place_of(p->to, i)};
    qsort(p->receivers, p->n_to, sizeof *p->receivers, by_place);
}

static uint32_t key_of(const struct transfer_piece *p, bool by_receiver)
{
    return by_receiver ? p->to : p->from;
}

// Sorts pieces by a number below n_keys. Pieces with the same number stay in the order of `in`.
static void order_by(const struct planner *p, bool by_receiver, size_t n_keys, const size_t *in, size_t *out)
{
    size_t n = p->plan->n;
    _cleanup_(free_p) size_t *next = xcalloc(n_keys + 1, sizeof *next);
    for (size_t i = 0; i < n; i++)
        next[key_of(&p->pieces[i], by_receiver) + 1]++;
    for (size_t k = 0; k < n_keys; k++)
        next[k + 1] += next[k];
    for (size_t i = 0; i < n; i++)
        out[next[key_of(&p->pieces[in[i]], by_receiver)]++] = in[i];
}

// There may be millions of pieces, and every rank sorts them before each transfer.
static void sort(struct planner *p)
{
    struct transfer_plan *plan = p->plan;
    struct transfer_piece *sorted = arena_array(p->arena, plan->n, sizeof *sorted);
    _cleanup_(free_p) size_t *order = xcalloc(plan->n, sizeof *order), *now = xcalloc(plan->n, sizeof *now);
    for (size_t i = 0; i < plan->n; i++)
        order[i] = i;
    order_by(p, true, p->n_to, order, now);
    order_by(p, false, p->n_from + p->n_to, now, order);
    for (size_t i = 0; i < plan->n; i++) {
        sorted[i] = p->pieces[order[i]];
        now[order[i]] = i;
    }
    for (size_t i = 0; i < plan->n; i++)
        if (sorted[i].from >= p->n_from)
            sorted[i].first = now[sorted[i].first];
    plan->pieces = sorted;
}

int transfer_plan(const struct transfer_side *from, const struct transfer_side *to, uint64_t piece_max, struct arena *a,
                  struct transfer_plan *ret, struct err *err)
{
    struct planner p = {.from = from, .to = to, .piece_max = piece_max, .arena = a, .plan = ret};
    const struct transfer_tensor **pairs = arena_array(a, from->n, sizeof *pairs);
    *ret = (struct transfer_plan){0};
    int r = match(&p, pairs, err);
    find_senders(&p);
    find_receivers(&p);
    for (size_t i = 0; r == 0 && i < from->n; i++)
        r = plan_tensor(&p, &from->tensors[i], pairs[i], err);
    if (r == 0 && ret->n)
        sort(&p);
    else
        ret->n = 0;
    free(p.pieces);
    return r;
}

static bool is_before(const struct transfer_piece *p, uint32_t from, uint32_t to)
{
    return p->from < from || (p->from == from && p->to < to);
}

const struct transfer_piece *transfer_plan_sends(const struct transfer_plan *p, uint32_t from, uint32_t to,
                                                 size_t *ret_n)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&p->pieces[middle], from, to))
            low = middle + 1;
        else
            high = middle;
    }
    for (*ret_n = 0; low + *ret_n < p->n && p->pieces[low + *ret_n].from == from && p->pieces[low + *ret_n].to == to;)
        ++*ret_n;
    return p->n ? p->pieces + low : NULL;
}
