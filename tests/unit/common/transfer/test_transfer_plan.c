// SPDX-License-Identifier: Apache-2.0
// Plans are compared with a reference that looks at one element at a time, over random meshes and splits.
#include "common/transfer/transfer_cursor.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum {
    DIMS = 3,
    MESH_DIMS = 3,
    TENSORS = 4,
    WORLD_MAX = 27,
    ELEMENTS_MAX = 9 * 9 * 9,
    ROUNDS = 1500,
    PLACES_MAX = 6,
    IDLE_MAX = 20000
};

struct side {
    struct mesh_dim dims[MESH_DIMS];
    struct mesh mesh;
    struct transfer_tensor tensors[TENSORS];
    int split[TENSORS][MESH_DIMS];
    struct transfer_place places[WORLD_MAX];
    uint32_t world;
    struct transfer_side view;
};

struct scene {
    struct side from, to;
    uint64_t shapes[TENSORS][DIMS];
    size_t n;
};

static void random_side(struct rand *r, struct side *s, const char *name)
{
    static const char *const names[MESH_DIMS] = {"pp", "dp", "tp"};
    s->world = 1;
    s->mesh = (struct mesh){name, s->dims, (size_t)rand_range(r, 1, MESH_DIMS)};
    for (size_t m = 0; m < s->mesh.n_dims; m++) {
        s->dims[m] = (struct mesh_dim){names[m], (uint32_t)rand_range(r, 1, 3)};
        s->world *= s->dims[m].size;
    }
}

// Up to three nodes of up to two pods, or NULL: all are in one pod.
static void random_places(struct rand *r, struct scene *c)
{
    uint32_t nodes = 1 + (uint32_t)rand_below(r, 3), pods = 1 + (uint32_t)rand_below(r, 2);
    bool anywhere = rand_below(r, 3) != 0;
    for (int k = 0; k < 2; k++) {
        struct side *s = k ? &c->to : &c->from;
        for (uint32_t i = 0; i < s->world; i++) {
            uint32_t node = (uint32_t)rand_below(r, nodes), pod = (uint32_t)rand_below(r, pods);
            s->places[i] = (struct transfer_place){node, node * pods + pod};
        }
        s->view.places = anywhere ? s->places : NULL;
    }
}

static void random_scene(struct rand *r, struct scene *c)
{
    static const char *const names[TENSORS] = {"embed", "norm", "up", "down"};
    static const enum safetensors_dtype dtypes[] = {SAFETENSORS_I64, SAFETENSORS_U64, SAFETENSORS_F64};
    *c = (struct scene){.n = (size_t)rand_range(r, 1, TENSORS)};
    random_side(r, &c->from, "actor");
    random_side(r, &c->to, "rollout");
    for (size_t i = 0; i < c->n; i++) {
        size_t n_dims = (size_t)rand_range(r, 0, DIMS);
        enum safetensors_dtype dtype = dtypes[rand_below(r, ARRAY_LEN(dtypes))];
        for (size_t d = 0; d < n_dims; d++)
            c->shapes[i][d] = (uint64_t)rand_range(r, rand_below(r, 10) ? 1 : 0, 9);
        for (int k = 0; k < 2; k++) {
            struct side *s = k ? &c->to : &c->from;
            size_t at = k ? c->n - 1 - i : i; // the order of one side does not matter
            for (size_t m = 0; m < s->mesh.n_dims; m++)
                s->split[at][m] = (int)rand_range(r, -1, (int64_t)n_dims - 1);
            s->tensors[at] = (struct transfer_tensor){names[i], dtype, c->shapes[i], n_dims, s->split[at]};
        }
    }
    c->from.view = (struct transfer_side){"actor", &c->from.mesh, c->from.tensors, c->n, NULL};
    c->to.view = (struct transfer_side){"rollout", &c->to.mesh, c->to.tensors, c->n, NULL};
    random_places(r, c);
}

// The reference: lists of indices, cut as torch.chunk() cuts lists.
static bool rank_has(const struct side *s, size_t tensor, uint32_t rank, const uint64_t *at)
{
    const struct transfer_tensor *t = &s->tensors[tensor];
    uint32_t coordinate[MESH_DIMS], left = rank;
    for (size_t m = s->mesh.n_dims; m-- > 0; left /= s->dims[m].size)
        coordinate[m] = left % s->dims[m].size;
    for (size_t d = 0; d < t->n_dims; d++) {
        uint64_t list[9], n = t->shape[d];
        for (uint64_t i = 0; i < n; i++)
            list[i] = i;
        for (size_t m = 0; m < s->mesh.n_dims; m++) {
            if (t->split[m] != (int)d)
                continue;
            uint64_t per_rank = 0, kept = 0;
            while (per_rank * s->dims[m].size < n)
                per_rank++;
            for (uint64_t i = 0; i < n; i++)
                if (i / (per_rank ? per_rank : 1) == coordinate[m])
                    list[kept++] = list[i];
            n = kept;
        }
        bool found = false;
        for (uint64_t i = 0; i < n; i++)
            found = found || list[i] == at[d];
        if (!found)
            return false;
    }
    return true;
}

static bool piece_has(const struct transfer_piece *p, const uint64_t *at)
{
    for (size_t d = 0; d < p->part.n_dims; d++)
        if (at[d] < p->part.from[d] || at[d] >= p->part.to[d])
            return false;
    return true;
}

static uint64_t elements(const struct transfer_tensor *t)
{
    uint64_t n = 1;
    for (size_t d = 0; d < t->n_dims; d++)
        n *= t->shape[d];
    return n;
}

static void place_of(const struct transfer_tensor *t, uint64_t i, uint64_t *at)
{
    for (size_t d = t->n_dims; d-- > 0; i /= t->shape[d])
        at[d] = i % t->shape[d];
}

static bool is_relayed(const struct scene *c, const struct transfer_piece *p)
{
    return p->from >= c->from.world;
}

// It comes from a rank that has it, or from one that has got it.
static void check_source(const struct scene *c, const struct transfer_plan *plan, const struct transfer_piece *p,
                         const uint64_t *at)
{
    if (!is_relayed(c, p)) {
        assert_true(rank_has(&c->from, p->source, p->from, at));
        return;
    }
    const struct transfer_piece *first = &plan->pieces[p->first];
    assert_int_equal(p->source, p->destination);
    assert_int_equal(first->to, p->from - c->from.world);
    assert_int_equal(first->destination, p->source);
    assert_true(piece_has(first, at));
}

// Every element that a receiver has comes once; nothing else comes.
static void check_elements(const struct scene *c, const struct transfer_plan *plan)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct transfer_tensor *t = &c->from.tensors[i];
        for (uint64_t e = 0; e < elements(t); e++) {
            uint64_t at[DIMS];
            unsigned times[WORLD_MAX] = {0};
            place_of(t, e, at);
            for (size_t k = 0; k < plan->n; k++) {
                const struct transfer_piece *p = &plan->pieces[k];
                if (p->destination != c->n - 1 - i || !piece_has(p, at))
                    continue;
                assert_true(is_relayed(c, p) || p->source == i);
                check_source(c, plan, p, at);
                times[p->to]++;
            }
            for (uint32_t rank = 0; rank < c->to.world; rank++)
                assert_int_equal(times[rank], rank_has(&c->to, c->n - 1 - i, rank, at));
        }
    }
}

enum { NODES, PODS };

// Where a rank has the element.
static void find_there(const struct side *s, size_t tensor, const uint64_t *at, bool ret[2][PLACES_MAX])
{
    for (uint32_t rank = 0; rank < s->world; rank++)
        if (rank_has(s, tensor, rank, at))
            ret[NODES][s->places[rank].node] = ret[PODS][s->places[rank].pod] = true;
}

// An element enters a node, and a pod, once, or not at all if a sender there has it.
static void check_crossings(const struct scene *c, const struct transfer_plan *plan)
{
    for (size_t i = 0; c->from.view.places && i < c->n; i++) {
        for (uint64_t e = 0; e < elements(&c->from.tensors[i]); e++) {
            uint64_t at[DIMS];
            unsigned enters[2][PLACES_MAX] = {0};
            bool had[2][PLACES_MAX] = {0}, wanted[2][PLACES_MAX] = {0};
            place_of(&c->from.tensors[i], e, at);
            find_there(&c->from, i, at, had);
            find_there(&c->to, c->n - 1 - i, at, wanted);
            for (size_t k = 0; k < plan->n; k++) {
                const struct transfer_piece *p = &plan->pieces[k];
                const struct transfer_place *to = &c->to.places[p->to],
                                            *from = is_relayed(c, p) ? &c->to.places[p->from - c->from.world]
                                                                     : &c->from.places[p->from];
                if (p->destination != c->n - 1 - i || !piece_has(p, at))
                    continue;
                enters[NODES][to->node] += to->node != from->node;
                enters[PODS][to->pod] += to->pod != from->pod;
            }
            for (int kind = NODES; kind <= PODS; kind++)
                for (int k = 0; k < PLACES_MAX; k++)
                    assert_int_equal(enters[kind][k], wanted[kind][k] && !had[kind][k]);
        }
    }
}

// The elements that a rank has of a tensor, in order, by the reference.
static size_t list_block(const struct side *s, size_t tensor, uint32_t rank, uint64_t *out)
{
    const struct transfer_tensor *t = &s->tensors[tensor];
    size_t n = 0;
    for (uint64_t e = 0; e < elements(t); e++) {
        uint64_t at[DIMS];
        place_of(t, e, at);
        if (rank_has(s, tensor, rank, at))
            out[n++] = e;
    }
    return n;
}

static void fill_block(const struct side *s, uint32_t rank, uint64_t out[TENSORS][ELEMENTS_MAX], size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)list_block(s, i, rank, out[i]);
}

static void check_block(const struct side *s, uint32_t rank, uint64_t got[TENSORS][ELEMENTS_MAX], size_t n)
{
    static uint64_t want[ELEMENTS_MAX];
    for (size_t i = 0; i < n; i++) {
        size_t len = list_block(s, i, rank, want);
        if (len)
            assert_memory_equal(got[i], want, len * sizeof *want);
    }
}

typedef uint64_t blocks[TENSORS][ELEMENTS_MAX];

struct traffic { // as it is between processes: each pair that moves anything has a stream of its own
    struct transfer_cursor streams[2 * WORLD_MAX][WORLD_MAX];
    blocks source[WORLD_MAX], destination[WORLD_MAX];
};

static void begin_traffic(const struct scene *c, const struct transfer_plan *plan, struct traffic *t)
{
    memset(t->destination, 0xff, c->to.world * sizeof *t->destination);
    for (uint32_t from = 0; from < c->from.world; from++)
        fill_block(&c->from, from, t->source[from], c->n);
    for (uint32_t from = 0; from < c->from.world + c->to.world; from++)
        for (uint32_t to = 0; to < c->to.world; to++)
            transfer_cursor_init(&t->streams[from][to], &c->from.view, &c->to.view, plan, from, to);
}

// All of the piece that a relay is to send has arrived there.
static bool has_arrived(const struct traffic *t, const struct transfer_plan *plan, const struct transfer_piece *p)
{
    const struct transfer_piece *first = &plan->pieces[p->first];
    const struct transfer_cursor *stream = &t->streams[first->from][first->to];
    return first < stream->pieces + stream->i;
}

// Moves some of the bytes that can move now. Returns whether any moved.
static bool run_stream(const struct scene *c, const struct transfer_plan *plan, struct traffic *t, uint32_t from,
                       uint32_t to, struct rand *r)
{
    struct transfer_cursor *stream = &t->streams[from][to];
    struct transfer_chunk chunk;
    uint64_t before = stream->left, max = rand_below(r, 2) ? 1 + rand_below(r, 100) : UINT64_MAX;
    bool relays = from >= c->from.world;
    for (stream->until = relays ? stream->i : stream->n; relays && stream->until < stream->n; stream->until++)
        if (!has_arrived(t, plan, &stream->pieces[stream->until]))
            break;
    while (rand_below(r, 20) && transfer_cursor_next(stream, max, &chunk))
        memcpy((char *)t->destination[to][chunk.destination] + chunk.to,
               (char *)(relays ? t->destination[from - c->from.world] : t->source[from])[chunk.source] + chunk.from,
               chunk.len);
    return stream->left < before;
}

// Fills each sender's blocks with the numbers of the elements, and moves them as both sides walk over the pieces, in
// any order in which streams may get on: none waits for another one forever.
static void check_values(const struct scene *c, const struct transfer_plan *plan, struct rand *r)
{
    static struct traffic t;
    uint64_t left = plan->bytes;
    uint32_t streams = (c->from.world + c->to.world) * c->to.world, idle = 0;
    begin_traffic(c, plan, &t);
    for (uint32_t k = 0; left && idle < IDLE_MAX; k += 1 + (uint32_t)rand_below(r, 2)) {
        uint32_t from = k % streams / c->to.world, to = k % streams % c->to.world;
        uint64_t before = t.streams[from][to].left;
        idle = run_stream(c, plan, &t, from, to, r) ? 0 : idle + 1;
        left -= before - t.streams[from][to].left;
    }
    assert_int_equal(left, 0);
    for (uint32_t to = 0; to < c->to.world; to++)
        check_block(&c->to, to, t.destination[to], c->n);
}

static bool have_same(const struct side *s, size_t tensor, uint32_t a, uint32_t b)
{
    const struct transfer_tensor *t = &s->tensors[tensor];
    struct shard x, y;
    shard_of_rank(&s->mesh, t->split, a, t->shape, t->n_dims, &x);
    shard_of_rank(&s->mesh, t->split, b, t->shape, t->n_dims, &y);
    return memcmp(&x, &y, sizeof x) == 0 && shard_elements(&x);
}

// Checks the ranks of a pod that have the same block of the only tensor: none has moved more than so many bytes more
// than another one.
static void check_even(const struct side *s, const uint64_t *load, uint64_t slack)
{
    for (uint32_t a = 0; a < s->world; a++)
        for (uint32_t b = 0; b < s->world; b++)
            if ((!s->view.places || s->places[a].pod == s->places[b].pod) && have_same(s, 0, a, b))
                assert_true(load[a] <= load[b] + slack);
}

// A sender is a piece ahead at most. A relay is ahead by the limit of a piece, and by one that it sends to all others.
static void check_balance(const struct scene *c, const struct transfer_plan *plan, uint64_t piece_max)
{
    uint64_t sent[WORLD_MAX] = {0}, relayed[WORLD_MAX] = {0}, largest = 0;
    for (size_t k = 0; k < plan->n; k++) {
        const struct transfer_piece *p = &plan->pieces[k];
        *(is_relayed(c, p) ? &relayed[p->from - c->from.world] : &sent[p->from]) += p->bytes;
        largest = MAX(largest, p->bytes);
    }
    if (c->n != 1)
        return;
    check_even(&c->from, sent, largest);
    check_even(&c->to, relayed, piece_max + largest * c->to.world);
}

static void random_meshes_against_the_reference(void **state)
{
    (void)state;
    static struct scene c;
    struct rand r;
    size_t pieces = 0, relayed = 0;
    rand_seed(&r, 17);
    for (int round = 0; round < ROUNDS; round++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct transfer_plan plan;
        uint64_t bytes = 0, piece_max = rand_below(&r, 2) ? 8 * rand_below(&r, 40) : 0;
        random_scene(&r, &c);
        assert_int_equal(transfer_plan(&c.from.view, &c.to.view, piece_max, &a, &plan, &err), 0);
        for (size_t k = 0; k < plan.n; k++) {
            assert_int_equal(plan.pieces[k].bytes, shard_elements(&plan.pieces[k].part) * 8);
            assert_true(!piece_max || plan.pieces[k].bytes <= MAX(piece_max, 8u));
            bytes += plan.pieces[k].bytes;
        }
        assert_int_equal(plan.bytes, bytes);
        check_elements(&c, &plan);
        check_crossings(&c, &plan);
        check_values(&c, &plan, &r);
        check_balance(&c, &plan, piece_max);
        pieces += plan.n;
        for (size_t k = 0; k < plan.n; k++)
            relayed += is_relayed(&c, &plan.pieces[k]);
        arena_done(&a);
    }
    assert_true(pieces > ROUNDS && relayed > ROUNDS);
}

static void pieces_of_a_pair_of_ranks_lie_together(void **state)
{
    (void)state;
    const struct mesh_dim dims[] = {{"dp", 4}};
    const struct mesh mesh = {"m", dims, 1};
    const uint64_t shape[] = {16};
    const struct transfer_tensor split[] = {{"v", SAFETENSORS_F32, shape, 1, (const int[]){0}},
                                            {"w", SAFETENSORS_F32, shape, 1, (const int[]){0}}},
                                 whole[] = {{"v", SAFETENSORS_F32, shape, 1, (const int[]){-1}},
                                            {"w", SAFETENSORS_F32, shape, 1, (const int[]){-1}}};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_plan plan;
    assert_int_equal(transfer_plan(&(struct transfer_side){"a", &mesh, split, 2, NULL},
                                   &(struct transfer_side){"b", &mesh, whole, 2, NULL}, 0, &a, &plan, &err),
                     0);
    assert_int_equal(plan.n, 32);
    size_t n;
    for (uint32_t from = 0; from < 4; from++) {
        for (uint32_t to = 0; to < 4; to++) {
            const struct transfer_piece *p = transfer_plan_sends(&plan, from, to, &n);
            assert_int_equal(n, 2);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(p[i].from, from);
                assert_int_equal(p[i].to, to);
                assert_int_equal(p[i].source, i);
            }
        }
    }
    (void)transfer_plan_sends(&plan, 4, 0, &n);
    assert_int_equal(n, 0);
    arena_done(&a);
}

static void all_ranks_that_have_a_tensor_share_in_sending_it(void **state)
{
    (void)state;
    const struct mesh_dim four[] = {{"dp", 4}}, one[] = {{"dp", 1}};
    const struct mesh from = {"m", four, 1}, to = {"m", one, 1};
    const uint64_t shape[] = {64, 16};
    const struct transfer_tensor t = {"w", SAFETENSORS_BF16, shape, 2, (const int[]){-1}};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_plan plan;
    assert_int_equal(transfer_plan(&(struct transfer_side){"a", &from, &t, 1, NULL},
                                   &(struct transfer_side){"b", &to, &t, 1, NULL}, 128, &a, &plan, &err),
                     0);
    for (uint32_t rank = 0; rank < 4; rank++) {
        size_t n;
        (void)transfer_plan_sends(&plan, rank, 0, &n);
        assert_int_equal(n, 4);
    }
    arena_done(&a);
}

static void print_source(const struct transfer_piece *p, uint32_t senders, struct buf *out)
{
    bool relayed = p->from >= senders;
    buf_printf(out, "%s %u", relayed ? "relay" : "sender", relayed ? p->from - senders : p->from);
}

static void print_pieces(const struct transfer_plan *plan, uint32_t senders, struct buf *out)
{
    for (size_t i = 0; i < plan->n; i++) {
        const struct transfer_piece *p = &plan->pieces[i];
        print_source(p, senders, out);
        buf_printf(out, " to %u: row %d", p->to, (int)p->part.from[0]);
        if (p->from >= senders) {
            buf_puts(out, ", has it from ");
            print_source(&plan->pieces[p->first], senders, out);
        }
        buf_puts(out, "\n");
    }
}

// Two senders have two rows each. All receivers want all rows. Receiver 0 is beside sender 0. Receivers 1 to 4 are on
// the other node: 1 and 2 in one pod, 3 and 4 in another one.
static void what_enters_a_node_or_a_pod_is_relayed_there(void **state)
{
    (void)state;
    const struct mesh_dim two[] = {{"tp", 2}}, five[] = {{"dp", 5}};
    const struct mesh from = {"m", two, 1}, to = {"m", five, 1};
    const uint64_t shape[] = {4, 8};
    const struct transfer_tensor rows = {"w", SAFETENSORS_U8, shape, 2, (const int[]){0}},
                                 whole = {"w", SAFETENSORS_U8, shape, 2, (const int[]){-1}};
    const struct transfer_place senders[] = {{7, 70}, {7, 71}},
                                receivers[] = {{7, 70}, {3, 31}, {3, 31}, {3, 32}, {3, 32}};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_plan plan;
    struct buf text = BUF_INIT(1 << 20);
    assert_int_equal(transfer_plan(&(struct transfer_side){"a", &from, &rows, 1, senders},
                                   &(struct transfer_side){"b", &to, &whole, 1, receivers}, 8, &a, &plan, &err),
                     0);
    print_pieces(&plan, 2, &text);
    assert_string_equal(buf_str(&text), "sender 0 to 0: row 0\n"
                                        "sender 0 to 0: row 1\n"
                                        "sender 0 to 1: row 0\n"
                                        "sender 0 to 3: row 1\n"
                                        "sender 1 to 0: row 2\n"
                                        "sender 1 to 0: row 3\n"
                                        "sender 1 to 1: row 3\n"
                                        "sender 1 to 2: row 2\n"
                                        "relay 1 to 2: row 0, has it from sender 0\n"
                                        "relay 1 to 2: row 3, has it from sender 1\n"
                                        "relay 1 to 3: row 0, has it from sender 0\n"
                                        "relay 1 to 4: row 3, has it from sender 1\n"
                                        "relay 2 to 1: row 1, has it from relay 3\n"
                                        "relay 2 to 1: row 2, has it from sender 1\n"
                                        "relay 2 to 4: row 2, has it from sender 1\n"
                                        "relay 3 to 2: row 1, has it from sender 0\n"
                                        "relay 3 to 4: row 0, has it from relay 1\n"
                                        "relay 3 to 4: row 1, has it from sender 0\n"
                                        "relay 4 to 3: row 2, has it from relay 2\n"
                                        "relay 4 to 3: row 3, has it from relay 1\n");
    buf_done(&text);
    arena_done(&a);
}

static bool has(const struct transfer_plan *plan, const char *want)
{
    for (size_t i = 0; i < plan->n_mismatches; i++)
        if (strcmp(plan->mismatches[i], want) == 0)
            return true;
    return false;
}

static void every_mismatch_is_listed_and_nothing_is_planned(void **state)
{
    (void)state;
    const struct mesh_dim dims[] = {{"dp", 2}};
    const struct mesh mesh = {"m", dims, 1};
    const uint64_t small[] = {4, 4}, large[] = {4, 5};
    const int rows[] = {0}, third[] = {2};
    const struct transfer_tensor a[] = {
        {"bias", SAFETENSORS_F32, small, 2, rows}, {"up", SAFETENSORS_F32, small, 2, rows},
        {"down", SAFETENSORS_F32, small, 2, rows}, {"good", SAFETENSORS_F32, small, 2, rows},
        {"cut", SAFETENSORS_F32, small, 2, third}, {"tiny", SAFETENSORS_F4, small, 2, rows}};
    const struct transfer_tensor b[] = {
        {"up", SAFETENSORS_BF16, small, 2, rows},  {"down", SAFETENSORS_F32, large, 2, rows},
        {"good", SAFETENSORS_F32, small, 2, rows}, {"norm", SAFETENSORS_F32, small, 2, rows},
        {"norm", SAFETENSORS_F32, small, 2, rows}, {"cut", SAFETENSORS_F32, small, 2, rows},
        {"tiny", SAFETENSORS_F4, small, 2, rows}};
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_plan plan;
    assert_int_equal(transfer_plan(&(struct transfer_side){"actor", &mesh, a, ARRAY_LEN(a), NULL},
                                   &(struct transfer_side){"rollout", &mesh, b, ARRAY_LEN(b), NULL}, 0, &arena, &plan,
                                   &err),
                     ERR_INVALID);
    assert_int_equal(plan.n, 0);
    assert_true(has(&plan, "'bias' is in actor and not in rollout"));
    assert_true(has(&plan, "'norm' is in rollout and not in actor"));
    assert_true(has(&plan, "'norm' occurs twice in rollout"));
    assert_true(has(&plan, "'up' has dtype F32 in actor and BF16 in rollout"));
    assert_true(has(&plan, "'down' has shape (4, 4) in actor and (4, 5) in rollout"));
    assert_true(has(&plan, "'cut' has 2 dimensions in actor, and dimension 'dp' of the mesh splits number 2 of them"));
    assert_true(has(&plan, "'tiny' has dtype F4 in actor; elements of less than a byte cannot be split"));
    assert_non_null(strstr(err.msg, "nothing is sent from actor to rollout"));
    arena_done(&arena);
}

static void too_many_pieces_are_refused(void **state)
{
    (void)state;
    const struct mesh_dim dims[] = {{"dp", 1}};
    const struct mesh mesh = {"m", dims, 1};
    const uint64_t shape[] = {TRANSFER_PIECES_MAX + 1};
    const struct transfer_tensor t = {"w", SAFETENSORS_U8, shape, 1, (const int[]){-1}};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_plan plan;
    const struct transfer_side side = {"a", &mesh, &t, 1, NULL};
    assert_int_equal(transfer_plan(&side, &side, 1, &a, &plan, &err), ERR_LIMIT);
    assert_int_equal(plan.n, 0);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_meshes_against_the_reference),
        cmocka_unit_test(pieces_of_a_pair_of_ranks_lie_together),
        cmocka_unit_test(all_ranks_that_have_a_tensor_share_in_sending_it),
        cmocka_unit_test(what_enters_a_node_or_a_pod_is_relayed_there),
        cmocka_unit_test(every_mismatch_is_listed_and_nothing_is_planned),
        cmocka_unit_test(too_many_pieces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
