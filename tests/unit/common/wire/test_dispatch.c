// SPDX-License-Identifier: Apache-2.0
// verl's modes as verl's own examples show them, rules of a user, and random meshes against a reference that looks for
// each rank's place in a list of all coordinates.
#include "common/wire/dispatch.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

// "train: pp2 dp2 tp2"
static struct mesh mesh_of(const char *text)
{
    struct mesh mesh = {0};
    const char *p = strchr(text, ':');
    struct mesh_dim *dims = arena_array(&arena, 16, sizeof *dims);
    mesh.name = arena_strndup(&arena, text, (size_t)(p - text));
    for (p++; *p == ' ';) {
        size_t len = strcspn(++p, "0123456789");
        dims[mesh.n_dims].name = arena_strndup(&arena, p, len);
        dims[mesh.n_dims++].size = (uint32_t)strtoul(p + len, (char **)&p, 10);
    }
    mesh.dims = dims;
    return mesh;
}

static const struct json *parse(const char *text)
{
    struct json *v;
    struct err err = ERR_INIT;
    if (!text)
        return NULL;
    if (json_parse(text, strlen(text), NULL, &arena, &v, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return v;
}

static int make(enum record_dispatch mode, const char *split, const char *collect, uint32_t world, const char *first,
                const char *second, struct dispatch *ret, struct err *err)
{
    struct dispatch_rule rule;
    struct mesh meshes[2];
    size_t n = 0;
    *err = ERR_INIT;
    if (first)
        meshes[n++] = mesh_of(first);
    if (second)
        meshes[n++] = mesh_of(second);
    int r = dispatch_rule_read(parse(split), parse(collect), &arena, &rule, err);
    if (r == 0)
        r = dispatch_make(mode, &rule, meshes, n, world, &arena, ret, err);
    assert_int_equal(r, err->code);
    return r;
}

static void numbers(struct buf *b, const uint32_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buf_printf(b, "%s%u", i ? " " : "", v[i]);
}

// `want` is "number of pieces: piece of each rank > ranks kept", "joined" or "a list", and what the pieces are if not
// rows.
static void gives(enum record_dispatch mode, const char *split, const char *collect, uint32_t world, const char *first,
                  const char *second, const char *want)
{
    struct dispatch d;
    struct err err;
    struct buf got = BUF_INIT(4096);
    if (make(mode, split, collect, world, first, second, &d, &err) < 0)
        fail_msg("%s", err.msg);
    buf_printf(&got, "%u: ", d.n_pieces);
    numbers(&got, d.piece_of, world);
    buf_puts(&got, " > ");
    numbers(&got, d.keep, d.n_keep);
    buf_puts(&got, d.join ? " joined" : " a list");
    buf_puts(&got, d.form == MODE_ELEMENTS ? ", elements" : d.form == MODE_WHOLE ? ", whole" : "");
    assert_string_equal(buf_str(&got), want);
    buf_done(&got);
}

static void refused(enum record_dispatch mode, const char *split, const char *collect, uint32_t world,
                    const char *first, const char *second, const char *why)
{
    struct dispatch d;
    struct err err;
    if (make(mode, split, collect, world, first, second, &d, &err) == 0)
        fail_msg("accepted, but it should say: %s", why);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
}

static void modes_without_a_mesh(void **state)
{
    (void)state;
    gives(RECORD_ONE_TO_ALL, NULL, NULL, 4, NULL, NULL, "1: 0 0 0 0 > 0 1 2 3 a list, whole");
    gives(RECORD_ALL_TO_ALL, NULL, NULL, 4, NULL, NULL, "4: 0 1 2 3 > 0 1 2 3 a list, elements");
    gives(RECORD_DP_COMPUTE, NULL, NULL, 4, NULL, NULL, "4: 0 1 2 3 > 0 1 2 3 a list, elements");
    gives(RECORD_DP_COMPUTE_PROTO, NULL, NULL, 2, NULL, NULL, "2: 0 1 > 0 1 joined");
    gives(RECORD_DP_COMPUTE_METRIC, NULL, NULL, 2, NULL, NULL, "2: 0 1 > 0 1 a list");
    gives(RECORD_DP_COMPUTE_PROTO, NULL, NULL, 1, NULL, NULL, "1: 0 > 0 joined");
}

// Row S1-10 of the notebooks: lists of two, worker i gets element i % 2, everybody's result is kept.
static void two_to_all_is_a_list_of_numbers(void **state)
{
    (void)state;
    gives(RECORD_SPLIT, "{\"index\":[0,1,0,1],\"elements\":true}", NULL, 4, NULL, NULL,
          "2: 0 1 0 1 > 0 1 2 3 a list, elements");
    gives(RECORD_SPLIT, "{\"index\":[0,1,0,1]}", "{\"join\":false}", 4, NULL, NULL, "2: 0 1 0 1 > 0 1 2 3 a list");
    gives(RECORD_SPLIT, "{\"index\":[0,1,0,1],\"elements\":true}", "{\"join\":true}", 4, NULL, NULL,
          "2: 0 1 0 1 > 0 1 2 3 joined, elements");
    struct dispatch d;
    struct err err;
    static const int x[] = {1, 2}, y[] = {5, 6}, want[] = {8, 10, 8, 10};
    assert_int_equal(make(RECORD_SPLIT, "{\"index\":[0,1,0,1]}", "{\"join\":false}", 4, NULL, NULL, &d, &err), 0);
    for (uint32_t i = 0; i < d.n_keep; i++)
        assert_int_equal(2 + x[d.piece_of[d.keep[i]]] + y[d.piece_of[d.keep[i]]], want[i]);
}

// verl's test of meshes that workers declare: what each rank adds depends on its coordinates.
static void sums(const char *text, const char *split, const char *collect, const int *input, const int *want)
{
    struct dispatch d;
    struct err err;
    struct mesh mesh = mesh_of(text);
    if (make(RECORD_SPLIT, split, collect, 8, text, NULL, &d, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(d.n_keep, 2);
    for (uint32_t i = 0; i < d.n_keep; i++) {
        int tp = (int)mesh_at(&mesh, d.keep[i], mesh_find(&mesh, "tp")),
            dp = (int)mesh_at(&mesh, d.keep[i], mesh_find(&mesh, "dp"));
        int pp = (int)mesh_at(&mesh, d.keep[i], mesh_find(&mesh, "pp"));
        int added = mesh_find(&mesh, "pp") < 0 ? (tp + 1) * dp : (tp + 1) * (dp + 2) * (pp + 3);
        assert_int_equal(input[d.piece_of[d.keep[i]]] + added, want[i]);
    }
}

static void named_meshes(void **state)
{
    (void)state;
    static const char infer[] = "infer: dp2 tp4", train[] = "train: pp2 dp2 tp2";
    gives(RECORD_SPLIT, "{\"dims\":[\"dp\"]}", "{\"at\":{\"tp\":0}}", 8, infer, NULL,
          "2: 0 0 0 0 1 1 1 1 > 0 4 joined");
    gives(RECORD_SPLIT, "{\"mesh\":\"train\",\"dims\":[\"dp\"]}", "{\"at\":{\"tp\":0,\"pp\":-1}}", 8, infer, train,
          "2: 0 0 1 1 0 0 1 1 > 4 6 joined");
    gives(RECORD_SPLIT, "{\"mesh\":\"train\",\"dims\":[\"dp\"]}",
          "{\"at\":{\"tp\":\"first\",\"pp\":\"last\",\"dp\":\"all\"}}", 8, infer, train,
          "2: 0 0 1 1 0 0 1 1 > 4 6 joined");
    // Workers may also report the number of their replica and whether they have the output. This becomes a rule, too.
    gives(RECORD_SPLIT, "{\"index\":[0,0,1,1,0,0,1,1]}", "{\"ranks\":[4,6]}", 8, NULL, NULL,
          "2: 0 0 1 1 0 0 1 1 > 4 6 joined");
    sums(infer, "{\"dims\":[\"dp\"]}", "{\"at\":{\"tp\":0}}", (const int[]){1, 2}, (const int[]){1, 3});
    sums(train, "{\"dims\":[\"dp\"]}", "{\"at\":{\"tp\":0,\"pp\":-1}}", (const int[]){3, 4}, (const int[]){11, 16});
}

static void splitting_in_one_mesh_and_collecting_in_another(void **state)
{
    (void)state;
    gives(RECORD_SPLIT, "{\"mesh\":\"a\",\"dims\":[\"dp\"]}", "{\"mesh\":\"b\",\"at\":{\"x\":1}}", 4, "a: dp2 tp2",
          "b: y2 x2", "2: 0 0 1 1 > 1 3 joined");
    gives(RECORD_SPLIT, NULL, "{\"mesh\":\"b\",\"at\":{\"x\":1}}", 4, "a: dp2 tp2", "b: y2 x2",
          "1: 0 0 0 0 > 1 3 joined, whole");
    gives(RECORD_SPLIT, "{\"dims\":[]}", "{\"ranks\":[3,1],\"join\":true}", 4, "a: dp2 tp2", NULL,
          "1: 0 0 0 0 > 3 1 joined");
    gives(RECORD_SPLIT, NULL, NULL, 3, NULL, NULL, "1: 0 0 0 > 0 1 2 joined, whole");
}

static void pieces_come_back_in_the_order_in_which_they_were_cut(void **state)
{
    (void)state;
    // The first of `dims` is the slowest, wherever the mesh has it, and results follow the pieces, not the ranks.
    gives(RECORD_SPLIT, "{\"dims\":[\"dp\",\"pp\"]}", NULL, 4, "m: pp2 dp2", NULL, "4: 0 2 1 3 > 0 2 1 3 joined");
    gives(RECORD_SPLIT, "{\"dims\":[\"pp\",\"dp\"]}", NULL, 4, "m: pp2 dp2", NULL, "4: 0 1 2 3 > 0 1 2 3 joined");
}

static void three_d_modes(void **state)
{
    (void)state;
    gives(RECORD_3D_PROTO, NULL, NULL, 8, "train: pp2 dp2 tp2", NULL, "2: 0 0 1 1 0 0 1 1 > 4 6 joined");
    gives(RECORD_3D_PP_ONLY, NULL, NULL, 8, "train: pp2 dp2 tp2", NULL, "1: 0 0 0 0 0 0 0 0 > 0 4 a list, whole");
    gives(RECORD_3D_PROTO, NULL, NULL, 4, "train: dp2 tp2", NULL, "2: 0 0 1 1 > 0 2 joined");
    gives(RECORD_3D_PROTO, NULL, NULL, 4, "train: pp2 dp1 cp2", NULL, "1: 0 0 0 0 > 2 joined");
    gives(RECORD_3D_PP_ONLY, NULL, NULL, 8, "train: pp2 dp2 cp2 tp1", NULL, "1: 0 0 0 0 0 0 0 0 > 0 4 a list, whole");
    gives(RECORD_3D_PROTO, "{\"elements\":true}", NULL, 4, "train: dp2 tp2", NULL, "2: 0 0 1 1 > 0 2 a list, elements");
    gives(RECORD_3D_PROTO, NULL, "{\"join\":false}", 4, "train: dp2 tp2", NULL, "2: 0 0 1 1 > 0 2 a list");
    gives(RECORD_3D_PROTO, "{\"mesh\":\"b\"}", NULL, 4, "a: dp4", "b: tp4", "1: 0 0 0 0 > 0 joined");
    gives(RECORD_3D_PROTO, NULL, NULL, 4, "train: dp2 ep1 tp2", NULL, "2: 0 0 1 1 > 0 2 joined");
    refused(RECORD_3D_PROTO, NULL, NULL, 4, "train: dp2 ep2", NULL, "mesh 'train' has 'ep', too");
    refused(RECORD_3D_PROTO, NULL, NULL, 4, NULL, NULL, "the call needs a mesh");
    refused(RECORD_3D_PROTO, "{\"mesh\":\"x\"}", NULL, 4, "train: dp4", NULL, "no mesh 'x'");
}

// verl's example of pipeline stages that become replicas: pp 2, dp 4, "ABCDEFGH".
static void pipeline_stages_as_replicas(void **state)
{
    (void)state;
    static const char letters[] = "ABCDEFGH", want[] = "ACEGBDFH";
    static const char rule[] = "{\"dims\":[\"dp\",\"pp\"]}", train[] = "train: pp2 dp4 tp1";
    struct dispatch d, preset;
    struct err err;
    assert_int_equal(make(RECORD_SPLIT, rule, "{\"at\":{\"pp\":0,\"tp\":0}}", 8, train, NULL, &d, &err), 0);
    assert_int_equal(make(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, train, "generate: micro2 dp4", &preset, &err), 0);
    assert_int_equal(d.n_pieces, 8);
    assert_int_equal(preset.n_pieces, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(letters[d.piece_of[i]], want[i]);
        assert_int_equal(letters[preset.piece_of[i]], want[i]);
    }
    assert_int_equal(d.n_keep, 4); // each with its stages' results: AB CD EF GH
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(d.keep[i], i);
    assert_int_equal(preset.n_keep, 8);
    for (uint32_t i = 0; i < 8; i++) // where every rank has its own, they come back as ABCDEFGH
        assert_int_equal(preset.piece_of[preset.keep[i]], i);
}

static void micro_replicas_of_two_meshes(void **state)
{
    (void)state;
    // Trained with p 1, t 4, generated with t 2: each replica of four is two that generate.
    gives(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: pp1 dp2 tp4", "generate: dp2 micro2 tp2",
          "4: 0 0 1 1 2 2 3 3 > 0 2 4 6 joined");
    // The same with ranks at regular distances, as HybridFlow pairs them: 0 with 2, 1 with 3.
    gives(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: pp1 dp2 tp4", "generate: dp2 tp2 micro2",
          "4: 0 1 0 1 2 3 2 3 > 0 1 4 5 joined");
    gives(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: pp2 dp2 tp2", "generate: micro2 dp2 tp2",
          "4: 0 0 2 2 1 1 3 3 > 0 4 2 6 joined");
    gives(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: pp2 dp2 tp2", "generate: pp2 dp2 tp2",
          "2: 0 0 1 1 0 0 1 1 > 0 2 joined");
    gives(RECORD_3D_ALL_MICRO_DP, "{\"mesh\":\"t\"}", "{\"mesh\":\"g\"}", 4, "g: dp4", "t: tp4",
          "4: 0 1 2 3 > 0 1 2 3 joined");
    // (cp * DP + dp) is the replica.
    gives(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 4, "train: dp2 cp2", "generate: dp4", "4: 0 2 1 3 > 0 2 1 3 joined");
    refused(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: dp4 tp2", "generate: dp2 tp4",
            "meshes 'train' and 'generate' do not fit: the 4 ranks that generate with rank 0");
    refused(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: dp2 tp4", "generate: tp2 dp4", "do not fit");
    refused(RECORD_3D_ALL_MICRO_DP, NULL, NULL, 8, "train: dp2 tp4", NULL, "needs two meshes");
}

static void rules_that_are_wrong(void **state)
{
    (void)state;
    static const char m[] = "m: dp2 tp2";
    refused(RECORD_SPLIT, "{\"dims\":[\"x\"]}", NULL, 4, m, NULL, "split: mesh 'm' has no dimension 'x'");
    refused(RECORD_SPLIT, "{\"dims\":[\"dp\",\"dp\"]}", NULL, 4, m, NULL, "'dp' twice");
    refused(RECORD_SPLIT, "{\"dims\":[\"dp\"]}", NULL, 4, NULL, NULL, "the call needs a mesh");
    refused(RECORD_SPLIT, "{\"dims\":[\"dp\"],\"mesh\":\"x\"}", NULL, 4, m, NULL, "no mesh 'x'");
    refused(RECORD_SPLIT, "{\"dims\":[1]}", NULL, 4, m, NULL, "split.dims must be");
    refused(RECORD_SPLIT, "{\"dims\":{}}", NULL, 4, m, NULL, "split.dims must be");
    refused(RECORD_SPLIT, "{\"dims\":[],\"index\":[0]}", NULL, 4, m, NULL, "not both");
    refused(RECORD_SPLIT, "{\"dim\":[]}", NULL, 4, m, NULL, "split has no member 'dim'");
    refused(RECORD_SPLIT, "[]", NULL, 4, m, NULL, "split must be an object");
    refused(RECORD_SPLIT, "{\"index\":[]}", NULL, 4, m, NULL, "split.index must be");
    refused(RECORD_SPLIT, "{\"index\":[0,1]}", NULL, 4, m, NULL, "split.index has 2 elements, the group has 4 ranks");
    refused(RECORD_SPLIT, "{\"index\":[0,1,2,-1]}", NULL, 4, m, NULL, "numbers from 0");
    refused(RECORD_SPLIT, "{\"index\":[0,1,2,4]}", NULL, 4, m, NULL, "rank 3 gets piece 4");
    refused(RECORD_SPLIT, "{\"index\":[0,0,2,2]}", NULL, 4, m, NULL, "no rank gets piece 1");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"x\":0}}", 4, m, NULL, "collect: mesh 'm' has no dimension 'x'");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"dp\":2}}", 4, m, NULL, "has 2 coordinates, and 2 is not one of them");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"dp\":-3}}", 4, m, NULL, "and -3 is not one of them");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"dp\":0,\"dp\":1}}", 4, m, NULL, "'dp' twice");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"dp\":0.5}}", 4, m, NULL, "an object of coordinates");
    refused(RECORD_SPLIT, NULL, "{\"at\":{},\"ranks\":[1]}", 4, m, NULL, "not both");
    refused(RECORD_SPLIT, NULL, "{\"ranks\":[4]}", 4, m, NULL, "there is no rank 4");
    refused(RECORD_SPLIT, NULL, "{\"ranks\":[1,1]}", 4, m, NULL, "rank 1 twice");
    refused(RECORD_SPLIT, NULL, "{\"ranks\":[]}", 4, m, NULL, "collect.ranks must be");
    refused(RECORD_SPLIT, NULL, "{\"join\":0}", 4, m, NULL, "no member 'join'");
    refused(RECORD_SPLIT, "{\"elements\":1}", NULL, 4, m, NULL, "split.elements must be true or false");
    refused(RECORD_SPLIT, NULL, "{\"at\":{\"dp\":\"middle\"}}", 4, m, NULL, "an object of coordinates");
    refused(RECORD_3D_PROTO, "{\"dims\":[\"dp\"]}", NULL, 4, m, NULL,
            "the 3D modes use only `mesh`, `elements` and `join`");
    refused(RECORD_3D_PP_ONLY, NULL, "{\"ranks\":[1]}", 4, m, NULL,
            "the 3D modes use only `mesh`, `elements` and `join`");
    refused(RECORD_ONE_TO_ALL, NULL, "{\"ranks\":[1]}", 4, m, NULL, "need dispatch mode SPLIT or a 3D mode");
    refused(RECORD_DP_COMPUTE_PROTO, "{\"elements\":true}", NULL, 4, m, NULL, "need dispatch mode SPLIT");
    refused(RECORD_DISPATCH_DEFAULT, NULL, NULL, 4, m, NULL, "no dispatch mode 0");
}

static void meshes_that_are_wrong(void **state)
{
    (void)state;
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m: dp2 tp3", NULL, "mesh 'm' is for 6 ranks, the group has 4");
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m: dp2 dp2", NULL, "the name of dimension 1");
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m: dp0 tp4", NULL, "is for 0 ranks");
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m: a65536 b65536 c4", NULL, "for more than");
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m:", NULL, "has 0 dimensions");
    refused(RECORD_ONE_TO_ALL, NULL, NULL, 4, "m: a1 b1 c1 d1 e1 f1 g1 h1 i4", NULL, "has 9 dimensions");
}

// The reference: coordinates by counting through them, groups by comparing all ranks with all.

enum { WORLD_MAX = 96, DIMS = 5 };
static const char *const dim_names[DIMS] = {"pp", "dp", "cp", "tp", "x"};

struct slow {
    struct mesh mesh;
    struct mesh_dim dims[DIMS];
    uint32_t at[WORLD_MAX][DIMS]; // by the index in dim_names
    uint32_t size[DIMS];
};

static void slow_make(struct slow *s, const char *name, const uint32_t size[DIMS], const int order[DIMS])
{
    uint32_t count[DIMS] = {0}, world = 1;
    s->mesh = (struct mesh){name, s->dims, DIMS};
    for (int i = 0; i < DIMS; i++) {
        s->dims[i] = (struct mesh_dim){dim_names[order[i]], size[order[i]]};
        s->size[i] = size[i];
        world *= size[i];
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        memcpy(s->at[rank], count, sizeof count);
        for (int i = DIMS - 1; i >= 0 && ++count[order[i]] == size[order[i]]; i--)
            count[order[i]] = 0;
    }
}

static void shuffle(struct rand *r, int order[DIMS])
{
    for (int i = 0; i < DIMS; i++)
        order[i] = i;
    for (int i = DIMS - 1; i > 0; i--) {
        int k = (int)rand_below(r, (uint64_t)i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

static uint32_t random_mesh(struct rand *r, struct slow *s, const char *name, bool x)
{
    uint32_t size[DIMS], world = 1;
    int order[DIMS];
    for (int i = 0; i < DIMS; i++) {
        size[i] = i == 4 && !x ? 1 : (uint32_t)rand_range(r, 1, 3);
        if (world * size[i] > WORLD_MAX)
            size[i] = 1;
        world *= size[i];
    }
    shuffle(r, order);
    slow_make(s, name, size, order);
    return world;
}

static void expect(const struct dispatch *d, const uint32_t *piece_of, const bool *keep, uint32_t world)
{
    uint32_t n = 0, kept = 0, last = 0;
    for (uint32_t i = 0; i < world; i++) {
        assert_int_equal(d->piece_of[i], piece_of[i]);
        n = MAX(n, piece_of[i] + 1);
        kept += keep[i];
    }
    assert_int_equal(d->n_pieces, n);
    assert_int_equal(d->n_keep, kept);
    for (uint32_t i = 0; i < kept; i++) { // all of them, in order, none twice
        uint32_t place = piece_of[d->keep[i]] * world + d->keep[i];
        assert_true(keep[d->keep[i]] && (i == 0 || place > last));
        last = place;
    }
}

static void random_meshes_3d(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 1);
    for (int round = 0; round < 300; round++) {
        struct slow s;
        struct dispatch d;
        struct err err = ERR_INIT;
        uint32_t world = random_mesh(&r, &s, "m", false), piece_of[WORLD_MAX], none[WORLD_MAX] = {0};
        bool keep[WORLD_MAX], stage[WORLD_MAX];
        for (uint32_t i = 0; i < world; i++) {
            const uint32_t *at = s.at[i];
            piece_of[i] = at[1];
            keep[i] = at[3] == 0 && at[2] == 0 && at[0] == s.size[0] - 1;
            stage[i] = at[3] == 0 && at[2] == 0 && at[1] == 0;
        }
        assert_int_equal(dispatch_make(RECORD_3D_PROTO, NULL, &s.mesh, 1, world, &arena, &d, &err), 0);
        expect(&d, piece_of, keep, world);
        assert_int_equal(dispatch_make(RECORD_3D_PP_ONLY, NULL, &s.mesh, 1, world, &arena, &d, &err), 0);
        expect(&d, none, stage, world);
    }
}

static void random_meshes_named(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 2);
    for (int round = 0; round < 300; round++) {
        struct slow s;
        struct dispatch d;
        struct err err = ERR_INIT;
        int order[DIMS];
        const char *names[DIMS];
        struct dispatch_at at[DIMS];
        uint32_t world = random_mesh(&r, &s, "m", true), piece_of[WORLD_MAX] = {0};
        bool keep[WORLD_MAX];
        struct dispatch_rule rule = {.dims = names, .at = at, .n_dims = rand_below(&r, DIMS + 1)};
        shuffle(&r, order);
        for (size_t i = 0; i < rule.n_dims; i++)
            names[i] = dim_names[order[i]];
        for (int i = 0; i < DIMS; i++)
            if (rand_below(&r, 2))
                at[rule.n_at++] =
                    (struct dispatch_at){dim_names[i], rand_range(&r, -(int64_t)s.size[i], s.size[i] - 1)};
        for (uint32_t rank = 0; rank < world; rank++) {
            keep[rank] = true;
            for (size_t i = 0; i < rule.n_dims; i++)
                piece_of[rank] = piece_of[rank] * s.size[order[i]] + s.at[rank][order[i]];
            for (size_t i = 0; i < rule.n_at; i++)
                for (int k = 0; k < DIMS; k++)
                    if (str_eq(at[i].dim, dim_names[k]))
                        keep[rank] = keep[rank] && (int64_t)s.at[rank][k] == (at[i].index + s.size[k]) % s.size[k];
        }
        assert_int_equal(dispatch_make(RECORD_SPLIT, &rule, &s.mesh, 1, world, &arena, &d, &err), 0);
        expect(&d, piece_of, keep, world);
    }
}

// Ranks that generate together: by comparing coordinates, all with all.
static bool together(const struct slow *t, const struct slow *g, uint32_t a, uint32_t b)
{
    return t->at[a][1] == t->at[b][1] && t->at[a][2] == t->at[b][2] && g->at[a][1] == g->at[b][1] &&
           g->at[a][2] == g->at[b][2] && g->at[a][4] == g->at[b][4];
}

static void random_meshes_micro(void **state)
{
    (void)state;
    struct rand r;
    int fit = 0, unfit = 0;
    rand_seed(&r, 3);
    for (int round = 0; round < 1000; round++) {
        struct slow t, g;
        struct dispatch d;
        struct err err = ERR_INIT;
        uint32_t world = random_mesh(&r, &t, "t", false), size[DIMS] = {t.size[0], t.size[1], t.size[2], t.size[3], 1};
        int order[DIMS];
        if (rand_below(&r, 2)) { // a part of training's pp or tp becomes replicas
            int from = rand_below(&r, 2) ? 0 : 3;
            size[4] = size[from];
            size[from] = 1;
        }
        shuffle(&r, order);
        slow_make(&g, "g", size, order);
        bool fits = true;
        for (uint32_t a = 0; a < world; a++) {
            uint32_t n = 0;
            for (uint32_t b = 0; b < world; b++)
                n += together(&t, &g, a, b);
            fits = fits && n == size[0] * size[3];
        }
        struct mesh meshes[] = {t.mesh, g.mesh};
        int got = dispatch_make(RECORD_3D_ALL_MICRO_DP, NULL, meshes, 2, world, &arena, &d, &err);
        assert_int_equal(got, fits ? 0 : ERR_INVALID);
        fit += fits;
        unfit += !fits;
        if (!fits)
            continue;
        uint32_t per = t.size[0] * t.size[3] / (size[0] * size[3]);
        assert_int_equal(d.n_pieces, world / (size[0] * size[3]));
        assert_int_equal(d.n_keep, d.n_pieces);
        for (uint32_t a = 0; a < world; a++) {
            assert_int_equal(d.piece_of[a] / per, t.at[a][2] * t.size[1] + t.at[a][1]); // its replica's pieces
            for (uint32_t b = 0; b < world; b++)
                assert_int_equal(d.piece_of[a] == d.piece_of[b], together(&t, &g, a, b));
        }
        for (uint32_t i = 0; i < d.n_keep; i++) {
            assert_int_equal(d.piece_of[d.keep[i]], i);
            assert_int_equal(g.at[d.keep[i]][0] + g.at[d.keep[i]][3], 0);
        }
        arena_done(&arena);
    }
    assert_true(fit > 100 && unfit > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(modes_without_a_mesh, teardown),
        cmocka_unit_test_teardown(two_to_all_is_a_list_of_numbers, teardown),
        cmocka_unit_test_teardown(named_meshes, teardown),
        cmocka_unit_test_teardown(splitting_in_one_mesh_and_collecting_in_another, teardown),
        cmocka_unit_test_teardown(pieces_come_back_in_the_order_in_which_they_were_cut, teardown),
        cmocka_unit_test_teardown(three_d_modes, teardown),
        cmocka_unit_test_teardown(pipeline_stages_as_replicas, teardown),
        cmocka_unit_test_teardown(micro_replicas_of_two_meshes, teardown),
        cmocka_unit_test_teardown(rules_that_are_wrong, teardown),
        cmocka_unit_test_teardown(meshes_that_are_wrong, teardown),
        cmocka_unit_test_teardown(random_meshes_3d, teardown),
        cmocka_unit_test_teardown(random_meshes_named, teardown),
        cmocka_unit_test_teardown(random_meshes_micro, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
