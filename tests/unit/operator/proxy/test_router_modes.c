// SPDX-License-Identifier: Apache-2.0
// The results of calls with each mode: verl's own examples and random meshes, with arguments as JSON and as safetensors
// documents. Workers are functions of their rank. A slow computation of their results is the reference.
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/wire/body_list.h"
#include "tests/unit/operator/proxy/batch_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

// verl's examples

// Row S2-10: zeros(10) on two ranks. Each adds its number. Then the other role subtracts 10 from the same
// data.
static int64_t minus_ten(uint32_t rank)
{
    (void)rank;
    return -10;
}

static void actor_and_critic(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(2, NULL, NULL);
    static const int64_t zeros[10];
    adds(w, (struct mode){0}, add_rank, zeros, 10, LIST(0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
    adds(w, (struct mode){RECORD_DP_COMPUTE_PROTO}, minus_ten, zeros, 10,
         LIST(-10, -10, -10, -10, -10, -10, -10, -10, -10, -10));
    batch_case_free(w);
}

// Row S1-10: four ranks share lists of two. The rule is registered with the method, or is in the call.
static void two_to_all(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    static const char *const each[] = {"{\"x\":1,\"y\":5}", "{\"x\":2,\"y\":6}", "{\"x\":1,\"y\":5}",
                                       "{\"x\":2,\"y\":6}"},
                             *const results[] = {"8", "10", "8", "10"};
    lists(w, (struct mode){.method = "two_to_all"}, "{\"x\":[1,2],\"y\":[5,6]}", each, results, "[8,10,8,10]");
    lists(w, (struct mode){RECORD_SPLIT, .more = ",\"split\":{\"index\":[0,1,0,1],\"elements\":true}"},
          "[{\"x\":1,\"y\":5},{\"x\":2,\"y\":6}]", each, results, "[8,10,8,10]");
    lists(w,
          (struct mode){RECORD_SPLIT,
                        .more = ",\"split\":{\"index\":[0,1,0,1],\"elements\":true},\"collect\":{\"ranks\":[3,0]}"},
          "{\"x\":[1,2],\"y\":[5,6]}", each, results, "[10,8]");
    batch_case_refused(w, &(struct mode){.method = "two_to_all"}, "{\"x\":[1,2,3],\"y\":[5,6]}", "INVALID",
                       "argument 'x' has more than 2 elements; its 2 pieces need one each");
    batch_case_refused(w, &(struct mode){.method = "two_to_all"}, "[1]", "INVALID",
                       "has 1 elements; its 2 pieces need one each");
    batch_case_free(w);
}

// verl's tests of meshes that workers declare: what a rank adds depends on its coordinates.
static int64_t infer_adds(uint32_t rank)
{
    uint32_t dp = rank / 4, tp = rank % 4;
    return (tp + 1) * dp;
}

static int64_t train_adds(uint32_t rank)
{
    uint32_t pp = rank / 4, dp = rank / 2 % 2, tp = rank % 2;
    return (tp + 1) * (dp + 2) * (pp + 3);
}

static void meshes_of_verl(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "infer: dp2 tp4", "train: pp2 dp2 tp2");
    adds(w,
         (struct mode){RECORD_SPLIT,
                       .more = ",\"split\":{\"mesh\":\"infer\",\"dims\":[\"dp\"]},\"collect\":{\"at\":{\"tp\":0}}"},
         infer_adds, LIST(1, 2), LIST(1, 3));
    adds(w,
         (struct mode){RECORD_SPLIT, .more = ",\"split\":{\"mesh\":\"train\",\"dims\":[\"dp\"]},"
                                             "\"collect\":{\"at\":{\"tp\":\"first\",\"pp\":\"last\"}}"},
         train_adds, LIST(3, 4), LIST(11, 16));
    adds(w, (struct mode){RECORD_3D_PROTO, .more = ",\"split\":{\"mesh\":\"train\"}"}, train_adds, LIST(3, 4),
         LIST(11, 16));
    adds(w, (struct mode){.method = "train"}, train_adds, LIST(3, 4), LIST(11, 16)); // as the method was registered
    batch_case_free(w);
}

// The new meshes are in a spec that is refused, or that the next attempt will use. The present ranks run with the
// meshes from before.
static void meshes_to_come_change_nothing_yet(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct batch_case *w = batch_case_new(8, "train: pp2 dp2 tp2", NULL);
    struct mesh infer = mesh_of("infer: dp2 tp4", &a);
    struct group_facts facts = {.uid = FIXTURE_UID,
                                .ns = "ml",
                                .name = "llama",
                                .world = 8,
                                .attempt = 1,
                                .oldest = 1,
                                .meshes = &infer,
                                .n_meshes = 1,
                                .meshes_to_come = true};
    router_group_set(&w->f.router, &facts);
    adds(w, (struct mode){RECORD_3D_PROTO}, train_adds, LIST(3, 4), LIST(11, 16));
    facts.meshes_to_come = false;
    router_group_set(&w->f.router, &facts);
    adds(w, (struct mode){RECORD_3D_PROTO}, infer_adds, LIST(1, 2), LIST(1, 3));
    batch_case_free(w);
    arena_done(&a);
}

// The same if the workers publish the meshes, and the group's object has none.
static void meshes_that_workers_publish(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct mesh infer = mesh_of("infer: dp2 tp4", &a);
    struct batch_case *w = batch_case_with(8, &infer, 1);
    arena_done(&a);
    static const char published[] = BATCH_CASE_HELLO
        ",\"meshes\":[{\"name\":\"infer\",\"dims\":[{\"name\":\"x\",\"size\":8}]},{\"name\":\"train\",\"dims\":"
        "[{\"name\":\"pp\",\"size\":2},{\"name\":\"dp\",\"size\":2},{\"name\":\"tp\",\"size\":2}]}]}";
    for (uint32_t i = 0; i < 8; i++)
        batch_case_dial(w, i, published);
    adds(w, (struct mode){RECORD_3D_PROTO, .more = ",\"split\":{\"mesh\":\"train\"}"}, train_adds, LIST(3, 4),
         LIST(11, 16));
    adds(w, (struct mode){RECORD_3D_PROTO}, infer_adds, LIST(1, 2), LIST(1, 3)); // the mesh of the object comes first
    worker_hang_up(&w->f, &w->workers[5]);
    batch_case_dial(w, 5, BATCH_CASE_HELLO "}");
    batch_case_refused(w, &(struct mode){RECORD_3D_PROTO}, "{\"a\":[1,2]}", "CONFLICT",
                       "ranks 0 and 5 of ml/llama do not publish the same meshes");
    batch_case_free(w);
}

// Pipeline stages as replicas: pp 2, dp 4, "ABCDEFGH" are split into A C E G and B D F H. The first stages return
// results.
static int64_t nothing(uint32_t rank)
{
    (void)rank;
    return 0;
}

static void stages_as_replicas(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "train: pp2 dp4 tp1", "generate: micro2 dp4");
    adds(w, (struct mode){RECORD_3D_ALL_MICRO_DP}, nothing, LIST('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'),
         LIST('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'));
    adds(w,
         (struct mode){RECORD_SPLIT, .more = ",\"split\":{\"dims\":[\"dp\",\"pp\"]},\"collect\":{\"at\":{\"pp\":0}}"},
         nothing, LIST('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'), LIST('A', 'C', 'E', 'G'));
    batch_case_free(w);
}

static void micro_replicas(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "train: pp1 dp2 tp4", "generate: dp2 tp2 micro2");
    adds(w, (struct mode){RECORD_3D_ALL_MICRO_DP}, add_rank, LIST(10, 20, 30, 40), LIST(10, 21, 34, 45));
    batch_case_free(w);
}

static void pipeline_stages_only(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "train: pp2 dp2 tp2", NULL);
    static const char *const each[] = {"[7]", "[7]", "[7]", "[7]", "[7]", "[7]", "[7]", "[7]"}, *const results[] = {
                                                                                                    "\"w0\"", "1",
                                                                                                    "2",      "3",
                                                                                                    "\"w4\"", "5",
                                                                                                    "6",      "7"};
    lists(w, (struct mode){RECORD_3D_PP_ONLY}, "[7]", each, results, "[\"w0\",\"w4\"]");
    for (uint32_t rank = 0; rank < 8; rank++)
        assert_int_equal(w->quiet[rank], rank % 4 != 0); // the other ranks need not send their results
    batch_case_free(w);
}

// Megatron's modes with plain lists: one element for each replica, results of the last stage.
static void lists_for_replicas(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "train: pp2 dp2 tp2", NULL);
    static const char *const each[] = {"[1]", "[1]", "[2]", "[2]", "[1]", "[1]", "[2]", "[2]"}, *const results[] = {
                                                                                                    "0", "1", "2", "3",
                                                                                                    "4", "5", "6", "7"};
    lists(w, (struct mode){RECORD_3D_PROTO, .more = ",\"split\":{\"elements\":true}"}, "[1,2]", each, results, "[4,6]");
    batch_case_free(w);
}

// Arguments are split, and the results of all ranks are a list: no padding is removed from it.
static void metrics_are_a_list(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    static const char *const each[] = {"{\"a\":[1,2]}", "{\"a\":[3,4]}", "{\"a\":[5,5]}", "{\"a\":[5,5]}"},
                             *const results[] = {"0.5", "{\"loss\":1}", "null", ""};
    lists(w, (struct mode){RECORD_DP_COMPUTE_METRIC, .more = ",\"pad\":true"}, "{\"a\":[1,2,3,4,5]}", each, results,
          "[0.5,{\"loss\":1},null,null]");
    batch_case_free(w);
}

// verl's tests of padding with world size 4: 10, 1 and 8 rows come back in their order.
static void padding_comes_off_again(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    const struct mode m = {.more = ",\"pad\":true"};
    adds(w, m, add_rank, LIST(0, 10, 20, 30, 40, 50, 60, 70, 80, 90), LIST(0, 10, 20, 31, 41, 51, 62, 72, 82, 93));
    adds(w, m, add_rank, LIST(7), LIST(7));
    adds(w, m, add_rank, LIST(0, 0, 0, 0, 0, 0, 0, 0), LIST(0, 0, 1, 1, 2, 2, 3, 3));
    adds(w, m, add_rank, LIST(1, 1, 1, 1, 1), LIST(1, 1, 2, 2, 3)); // torch.chunk() would make only three pieces
    batch_case_refused(
        w, &(struct mode){0}, "{\"a\":[1,2,3]}", "INVALID",
        "f(): a batch of 3 rows cannot be split into 4 equal pieces: send a multiple, or ask for padding");
    batch_case_refused(w, &(struct mode){RECORD_ONE_TO_ALL, .more = ",\"pad\":true"}, "{\"a\":[1,2,3]}", "INVALID",
                       "padding is for batches that are split into pieces, the call is ONE_TO_ALL");
    batch_case_free(w);
}

// Whichever ranks got the padded piece, their results lose the padding, in whatever order the ranks are listed.
static void padding_is_known_by_piece(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    adds(w, (struct mode){RECORD_SPLIT, .more = ",\"pad\":true,\"split\":{\"index\":[1,0,1,0]}"}, add_rank,
         LIST(10, 20, 30), LIST(30, 11, 21, 32, 13, 23));
    batch_case_free(w);
}

// Each rank returns its arguments. Rank 0 hangs up before rank 1 answers.
static void answer_and_leave(struct batch_case *w)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct body args;
        uint32_t id = batch_case_takes(w, rank, &args);
        assert_int_not_equal(id, 0);
        batch_case_says(w, rank, id, &args);
        if (rank == 0)
            worker_hang_up(&w->f, &w->workers[0]);
    }
}

static void the_rule_of_a_method_outlasts_the_rank_that_declared_it(void **state)
{
    (void)state;
    static const char hello[] = "{\"methods\":[{\"name\":\"last\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\","
                                "\"split\":{\"index\":[1,0],\"elements\":true},\"collect\":{\"ranks\":[1]}},"
                                "{\"name\":\"both\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\","
                                "\"split\":{\"index\":[1,0]},\"collect\":{\"ranks\":[1,0],\"join\":true}}]}";
    static const int64_t in[3] = {1, 2, 3};
    struct batch_case *w = batch_case_with(2, NULL, 0);
    batch_case_dial(w, 0, hello);
    batch_case_dial(w, 1, hello);
    struct body list = text_body("{\"a\":[1,2]}"), batch = batch_of(in, 3, true, NULL, NULL, &w->memory);
    batch_case_sends(w, &(struct mode){.method = "last"}, &list);
    answer_and_leave(w);
    assert_string_equal(batch_case_hears(w).data, "[{\"a\":1}]");
    batch_case_dial(w, 0, hello);
    batch_case_sends(w, &(struct mode){.method = "both", .more = ",\"pad\":true"}, &batch);
    answer_and_leave(w);
    struct body got = batch_case_hears(w);
    int64_t values[ROWS_MAX];
    assert_int_equal(values_of(got.data, got.len, values, &w->memory), 3);
    assert_memory_equal(values, in, sizeof in);
    batch_case_free(w);
}

static void all_get_the_same_and_batches_are_a_list_of_bodies(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(2, NULL, NULL);
    static const int64_t in[] = {5, 6};
    struct body args = batch_of(in, 2, true, NULL, "{\"k\":1}", &w->memory), got;
    struct body_list l;
    struct scatter_source one;
    struct err err = ERR_INIT;
    batch_case_sends(w, &(struct mode){RECORD_ONE_TO_ALL}, &args);
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t id = batch_case_takes(w, rank, &got);
        assert_int_equal(got.len, args.len);
        assert_memory_equal(got.data, args.data, args.len);
        got = rank ? text_body("[1]") : args;
        batch_case_says(w, rank, id, &got);
    }
    got = batch_case_hears(w);
    assert_int_equal(body_list_read(got.data, got.len, &l, &err), 0);
    assert_int_equal(l.n, 2);
    assert_true(body_list_next(&l, &one));
    assert_int_equal(one.len, args.len);
    assert_memory_equal(one.data, args.data, args.len);
    assert_true(body_list_next(&l, &one));
    assert_int_equal(one.len, 3);
    assert_memory_equal(one.data, "[1]", 3);
    // And back: each rank gets its own part.
    batch_case_sends(w, &(struct mode){RECORD_ALL_TO_ALL}, &got);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct body mine;
        uint32_t id = batch_case_takes(w, rank, &mine);
        assert_int_equal(mine.len, rank ? 3 : args.len);
        struct body null = text_body("null");
        batch_case_says(w, rank, id, &null);
    }
    assert_string_equal(batch_case_hears(w).data, "[null,null]");
    batch_case_free(w);
}

static void columns_and_metadata_go_with_the_pieces(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(2, NULL, NULL);
    static const int64_t in[] = {1, 2, 3, 4};
    struct body args = batch_of(in, 4, true, "{\"p\":[\"a\",\"b\",\"c\",\"d\"]}", "{\"t\":0.7}", &w->memory), got;
    struct safetensors s;
    struct err err = ERR_INIT;
    static const char *const columns[] = {"{\"p\":[\"a\",\"b\"]}", "{\"p\":[\"c\",\"d\"]}"},
                             *const loss[] = {"{\"t\":0.7,\"metrics\":{\"loss\":0.5}}",
                                              "{\"t\":0.7,\"metrics\":{\"loss\":0.25}}"};
    batch_case_sends(w, &(struct mode){0}, &args);
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t id = batch_case_takes(w, rank, &got);
        assert_int_equal(safetensors_read(got.data, got.len, &w->memory, &s, &err), 0);
        assert_string_equal(safetensors_meta_get(&s, BATCH_COLUMNS), columns[rank]);
        assert_string_equal(safetensors_meta_get(&s, BATCH_META), "{\"t\":0.7}");
        got = batch_of(in, 2, true, columns[rank], loss[rank], &w->memory);
        batch_case_says(w, rank, id, &got);
    }
    got = batch_case_hears(w);
    assert_int_equal(safetensors_read(got.data, got.len, &w->memory, &s, &err), 0);
    assert_string_equal(safetensors_meta_get(&s, BATCH_COLUMNS), "{\"p\":[\"a\",\"b\",\"c\",\"d\"]}");
    assert_string_equal(safetensors_meta_get(&s, BATCH_META), "{\"t\":0.7,\"metrics\":{\"loss\":[0.5,0.25]}}");
    batch_case_free(w);
}

// Errors

static void results_do_not_fit(struct batch_case *w, const struct body *one, const struct body *other, const char *why)
{
    struct body args = text_body("{\"a\":[1,2]}");
    batch_case_sends(w, &(struct mode){0}, &args);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct body got;
        batch_case_says(w, rank, batch_case_takes(w, rank, &got), rank ? other : one);
    }
    const char *got = client_hears(&w->c);
    if (!got || !strstr(got, " ERROR INVALID ") || !strstr(got, why))
        fail_msg("%s\ncame, not %s", got ? got : "nothing", why);
}

static void results_that_do_not_fit_name_ranks_and_keys(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(2, NULL, NULL);
    static const int64_t in[] = {1};
    struct body json = text_body("{\"a\":[1]}"), number = text_body("7"), null = text_body("null"), got;
    struct body plain = batch_of(in, 1, true, NULL, "{\"t\":1}", &w->memory),
                other = batch_of(in, 1, true, NULL, "{\"t\":2}", &w->memory),
                column = batch_of(in, 1, true, "{\"p\":[1]}", NULL, &w->memory);
    results_do_not_fit(w, &plain, &other, "'t' of cadre.meta is 1 of rank 0, but 2 of rank 1");
    results_do_not_fit(w, &json, &plain, "of the ranks 0 and 1 one returned JSON, the other a safetensors document");
    results_do_not_fit(w, &plain, &column, "rank 1 has column 'p', rank 0 has not");
    results_do_not_fit(w, &json, &number,
                       "rank 1 ran f(), but its result cannot be joined with the others: this is not a batch");
    results_do_not_fit(w, &null, &json, "rank 0 ran f(), but its result cannot be joined");
    // If no rank returns anything, the answer is null.
    struct body args = text_body("{\"a\":[1,2]}");
    batch_case_sends(w, &(struct mode){0}, &args);
    for (uint32_t rank = 0; rank < 2; rank++)
        batch_case_says(w, rank, batch_case_takes(w, rank, &got), &null);
    assert_string_equal(batch_case_hears(w).data, "null");
    // With padding, a result must have one row for each row of arguments.
    args = text_body("{\"a\":[1,2,3]}");
    batch_case_sends(w, &(struct mode){.more = ",\"pad\":true"}, &args);
    for (uint32_t rank = 0; rank < 2; rank++)
        batch_case_says(w, rank, batch_case_takes(w, rank, &got), &json);
    assert_non_null(strstr(client_hears(&w->c), "rank 0 got 2 rows and returned 1"));
    batch_case_free(w);
}

static void what_is_wrong_reaches_no_rank(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    const struct mode proto = {0}, split = {RECORD_SPLIT};
    batch_case_refused(w, &proto, "[1,2,3,4]", "INVALID",
                       "f(): this is not a batch: neither a safetensors document nor a JSON object");
    batch_case_refused(w, &proto, "{\"a\":1}", "INVALID", "'a' is not a list; in a batch everything is a list");
    batch_case_refused(w, &proto, "{\"a\":[1],\"b\":[1,2]}", "INVALID", "'b' has 2 rows, but 'a' has 1");
    batch_case_refused(w, &proto, "{\"a\":[1,2,3,4]", "INVALID", "not valid JSON at byte");
    batch_case_refused(w, &proto, "", "INVALID", "this is not a batch");
    batch_case_refused(w, &split, "{\"a\":[1]}", "INVALID", "dispatch mode SPLIT needs `split` or `collect`");
    batch_case_refused(w, &(struct mode){RECORD_3D_PROTO}, "{\"a\":[1]}", "NOT_FOUND",
                       "f() of ml/llama: the call needs a mesh, the group has 0 in spec.worker.meshes");
    batch_case_refused(w, &(struct mode){RECORD_SPLIT, .more = ",\"split\":{\"mesh\":\"m\",\"dims\":[\"dp\"]}"}, "{}",
                       "NOT_FOUND", "the group has no mesh 'm'");
    batch_case_refused(w, &(struct mode){RECORD_SPLIT, .more = ",\"split\":[1]"}, "{}", "INVALID",
                       "split must be an object");
    batch_case_refused(w, &(struct mode){RECORD_SPLIT, .more = ",\"split\":{\"index\":[0,1]}"}, "{}", "INVALID",
                       "split.index has 2 elements, the group has 4 ranks");
    batch_case_refused(w, &(struct mode){RECORD_SPLIT, .more = ",\"collect\":{\"ranks\":[9]}"}, "{}", "INVALID",
                       "there is no rank 9");
    batch_case_refused(w, &(struct mode){RECORD_ONE_TO_ALL, .more = ",\"split\":{\"elements\":true}"}, "{}", "INVALID",
                       "`split` and `collect` need dispatch mode SPLIT or a 3D mode");
    batch_case_refused(w, &(struct mode){RECORD_SPLIT, .more = ",\"split\":{\"a\":[1}"}, "{}", "INVALID",
                       "not valid JSON");
    batch_case_refused(w, &(struct mode){.more = ",\"pad\":1"}, "{}", "INVALID", "\"pad\" must be true or false");
    batch_case_refused(w, &(struct mode){.execute = RECORD_RANK_ZERO, .more = ",\"pad\":true"}, "{}", "INVALID",
                       "only one rank runs the call; leave out split, collect and pad");
    static const int64_t in[] = {1, 2, 3, 4};
    struct body batch = batch_of(in, 4, true, NULL, NULL, &w->memory);
    batch_case_sends(w, &(struct mode){RECORD_ALL_TO_ALL}, &batch);
    assert_non_null(strstr(client_hears(&w->c), "one batch, but the call is ALL_TO_ALL"));
    batch.len--; // the last value is incomplete
    batch_case_sends(w, &proto, &batch);
    assert_non_null(strstr(client_hears(&w->c), "its tensors end at byte"));
    static char bodies[] = "\xff\xff\xff\xff\0\0\0";
    struct body list = {bodies, 8};
    batch_case_sends(w, &proto, &list);
    assert_non_null(strstr(client_hears(&w->c), "a list of batches; dispatch mode DP_COMPUTE_PROTO takes one"));
    batch_case_sends(w, &(struct mode){RECORD_ALL_TO_ALL}, &list);
    assert_non_null(strstr(client_hears(&w->c), "has 0 elements, ml/llama has 4 ranks"));
    batch_case_free(w);
}

static void a_method_with_a_wrong_rule_is_not_let_in(void **state)
{
    (void)state;
    static const char *const hellos[] = {
        "{\"methods\":[{\"name\":\"f\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\",\"split\":{\"x\":1}}]}",
        "{\"methods\":[{\"name\":\"f\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\",\"collect\":{}}]}",
        "{\"methods\":[],\"meshes\":[{\"name\":\"m\"}]}", "{\"methods\":[],\"meshes\":{}}",
        "{\"methods\":[],\"meshes\":[{\"name\":\"m\",\"dims\":[{\"name\":\"a\",\"size\":0}]}]}"};
    struct batch_case *w = batch_case_with(1, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(worker_dial_as(&w->f, &w->workers[0], 0, 1, hellos[i], &err), ERR_INVALID);
        assert_true(str_starts(err.msg, "HELLO"));
    }
    batch_case_free(w);
}

// Only results that are part of the answer are kept until the call ends.
static void results_that_are_not_kept_take_no_memory(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, NULL, NULL);
    struct body args = text_body("[1]"), got, big = {arena_alloc(&w->memory, 1 << 19), 1 << 19};
    memset(big.data, '1', big.len);
    batch_case_sends(w, &(struct mode){RECORD_SPLIT, .more = ",\"collect\":{\"ranks\":[3],\"join\":false}"}, &args);
    uint32_t ids[3];
    for (uint32_t rank = 0; rank < 3; rank++)
        ids[rank] = batch_case_takes(w, rank, &got);
    size_t before = quota_used(w->f.router.bytes);
    for (uint32_t rank = 0; rank < 3; rank++) // they may send their results all the same
        batch_case_says(w, rank, ids[rank], &big);
    assert_int_equal(quota_used(w->f.router.bytes), before);
    batch_case_says(w, 3, batch_case_takes(w, 3, &got), &args);
    assert_string_equal(batch_case_hears(w).data, "[[1]]");
    batch_case_free(w);
}

static void a_call_that_waits_is_cut_when_it_is_sent(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_with(2, NULL, 0);
    struct body args = text_body("{\"a\":[1,2,3]}"), got, result = text_body("{\"a\":[7,8]}");
    batch_case_sends(w, &(struct mode){.more = ",\"pad\":true"}, &args);
    batch_case_dial(w, 0, BATCH_CASE_HELLO "}");
    assert_int_equal(batch_case_takes(w, 0, &got), 0);
    batch_case_dial(w, 1, BATCH_CASE_HELLO "}");
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t id = batch_case_takes(w, rank, &got);
        assert_string_equal(got.data, rank ? "{\"a\":[3,3]}" : "{\"a\":[1,2]}");
        batch_case_says(w, rank, id, &result);
    }
    assert_string_equal(batch_case_hears(w).data, "{\"a\":[7,8,7]}");
    batch_case_free(w);
}

static void a_rank_that_dies_ends_the_call_also_where_its_result_is_not_wanted(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(4, "train: dp2 tp2", NULL);
    struct body args = text_body("{\"a\":[1,2]}"), got, result = text_body("{\"a\":[7]}");
    batch_case_sends(w, &(struct mode){RECORD_3D_PROTO}, &args);
    batch_case_says(w, 0, batch_case_takes(w, 0, &got), &result);
    assert_int_not_equal(batch_case_takes(w, 3, &got), 0);
    worker_hang_up(&w->f, &w->workers[3]);
    fixture_pass(&w->f, fixture_limits.exit_wait_ms);
    assert_non_null(strstr(client_hears(&w->c), "ERROR rank=3 UNAVAILABLE"));
    batch_case_says(w, 2, batch_case_takes(w, 2, &got), &result); // it is late, and is dropped
    assert_null(client_hears(&w->c));
    batch_case_says(w, 1, batch_case_takes(w, 1, &got), &result);
    batch_case_free(w);
}

// There may be any number of ranks. They get everything, or a piece each, or share pieces.
static void a_batch_is_held_once(void **state)
{
    (void)state;
    struct batch_case *w = batch_case_new(8, "train: dp2 tp4", NULL);
    static const struct mode modes[] = {{RECORD_ONE_TO_ALL}, {RECORD_DP_COMPUTE_PROTO}, {RECORD_3D_PROTO}};
    static int64_t values[1 << 16];
    struct body args = batch_of(values, ARRAY_LEN(values), true, NULL, NULL, &w->memory), got, null = text_body("null");
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        batch_case_sends(w, &modes[i], &args);
        assert_in_range(quota_used(w->f.router.bytes), args.len, args.len + args.len / 8);
        for (uint32_t rank = 0; rank < 8; rank++)
            batch_case_says(w, rank, batch_case_takes(w, rank, &got), &null);
        batch_case_hears(w);
    }
    batch_case_free(w);
}

// Random meshes. The reference counts through the coordinates.

enum { DIMS = 4 };
static const char *const dim_names[DIMS] = {"pp", "dp", "cp", "tp"};

struct slow {
    struct mesh_dim dims[DIMS];
    uint32_t at[WORLD_MAX][DIMS];
    uint32_t world;
};

static void slow_make(struct slow *s, struct rand *r)
{
    uint32_t count[DIMS] = {0};
    s->world = 1;
    for (int i = 0; i < DIMS; i++) {
        s->dims[i] = (struct mesh_dim){dim_names[i], (uint32_t)rand_range(r, 1, 3)};
        s->world *= s->dims[i].size;
    }
    for (uint32_t rank = 0; rank < s->world; rank++) {
        memcpy(s->at[rank], count, sizeof count);
        for (int i = DIMS - 1; i >= 0 && ++count[i] == s->dims[i].size; i--)
            count[i] = 0;
    }
}

static int64_t thousands(uint32_t rank)
{
    return 1000 * (int64_t)rank;
}

struct expected {
    int64_t in[ROWS_MAX], want[ROWS_MAX];
    size_t n, n_want;
};

// The reference for the result: the rows of each piece, from the ranks whose results are collected.
static void expect(struct expected *e, uint32_t world, const uint32_t *piece, uint32_t n_pieces, const bool *keep)
{
    size_t each = (e->n + n_pieces - 1) / n_pieces;
    e->n_want = 0;
    for (size_t i = 0; i < e->n; i++)
        e->in[i] = (int64_t)i;
    for (uint32_t p = 0; p < n_pieces; p++)
        for (uint32_t rank = 0; rank < world; rank++)
            for (size_t k = p * each; keep[rank] && piece[rank] == p && k < (p + 1) * each && k < e->n; k++)
                e->want[e->n_want++] = e->in[k] + thousands(rank);
}

static void random_meshes(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 7);
    for (int round = 0; round < 40; round++) {
        struct slow s;
        struct expected e = {.n = 0};
        uint32_t proto[WORLD_MAX] = {0}, named[WORLD_MAX] = {0}, pp, dp, tp;
        bool last[WORLD_MAX], at[WORLD_MAX];
        slow_make(&s, &r);
        struct mesh mesh = {"m", s.dims, DIMS};
        struct batch_case *w = batch_case_with(s.world, &mesh, 1);
        pp = s.dims[0].size;
        dp = s.dims[1].size;
        tp = s.dims[3].size;
        for (uint32_t i = 0; i < s.world; i++) {
            batch_case_dial(w, i, BATCH_CASE_HELLO "}");
            proto[i] = s.at[i][1];
            last[i] = s.at[i][0] == pp - 1 && s.at[i][2] == 0 && s.at[i][3] == 0;
            named[i] = s.at[i][3] * dp + s.at[i][1];
            at[i] = s.at[i][2] == 0;
        }
        e.n = rand_below(&r, 30) + 1;
        expect(&e, s.world, proto, dp, last);
        adds(w, (struct mode){RECORD_3D_PROTO, .more = ",\"pad\":true"}, thousands, e.in, e.n, e.want, e.n_want);
        e.n = rand_below(&r, 20) + 1;
        expect(&e, s.world, named, tp * dp, at);
        adds(
            w,
            (struct mode){RECORD_SPLIT,
                          .more = ",\"pad\":true,\"split\":{\"dims\":[\"tp\",\"dp\"]},\"collect\":{\"at\":{\"cp\":0}}"},
            thousands, e.in, e.n, e.want, e.n_want);
        batch_case_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actor_and_critic),
        cmocka_unit_test(two_to_all),
        cmocka_unit_test(meshes_of_verl),
        cmocka_unit_test(meshes_to_come_change_nothing_yet),
        cmocka_unit_test(meshes_that_workers_publish),
        cmocka_unit_test(stages_as_replicas),
        cmocka_unit_test(micro_replicas),
        cmocka_unit_test(pipeline_stages_only),
        cmocka_unit_test(lists_for_replicas),
        cmocka_unit_test(metrics_are_a_list),
        cmocka_unit_test(padding_comes_off_again),
        cmocka_unit_test(padding_is_known_by_piece),
        cmocka_unit_test(the_rule_of_a_method_outlasts_the_rank_that_declared_it),
        cmocka_unit_test(all_get_the_same_and_batches_are_a_list_of_bodies),
        cmocka_unit_test(columns_and_metadata_go_with_the_pieces),
        cmocka_unit_test(results_that_do_not_fit_name_ranks_and_keys),
        cmocka_unit_test(what_is_wrong_reaches_no_rank),
        cmocka_unit_test(a_method_with_a_wrong_rule_is_not_let_in),
        cmocka_unit_test(results_that_are_not_kept_take_no_memory),
        cmocka_unit_test(a_call_that_waits_is_cut_when_it_is_sent),
        cmocka_unit_test(a_rank_that_dies_ends_the_call_also_where_its_result_is_not_wanted),
        cmocka_unit_test(a_batch_is_held_once),
        cmocka_unit_test(random_meshes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture_cuts = true;
    return failed + cmocka_run_group_tests_name("in pieces", tests, NULL, NULL);
}
