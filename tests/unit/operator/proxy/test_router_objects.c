// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/str.h"
#include "tests/unit/operator/proxy/proxy_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Results that stay

static void a_rank_s_result_that_stays_there_is_a_reference(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = KEEP, .args = "[1]"});
    keeps(w, 2, worker_takes(&w->workers[2], "[1]"), REF_BATCH);
    (void)reference(w, &a, &ref);
    assert_string_equal(ref.uid, FIXTURE_UID);
    assert_int_equal(ref.form, REF_ONE);
    assert_int_equal(ref.n, 1);
    assert_int_equal(ref.parts[0].rank, 2);
    assert_int_equal(ref.parts[0].attempt, 1);
    assert_true(ref.parts[0].id == 18);
    assert_true(ref.parts[0].bytes == 5);
    assert_int_equal(ref.parts[0].kind, REF_BATCH);
    arena_done(&a);
}

static void those_of_all_ranks_are_one_reference(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends_group(w, 1, KEEP, "[1]");
    all_keep(w, "[1]", REF_JSON);
    (void)reference(w, &a, &ref);
    assert_int_equal(ref.form, REF_LIST);
    assert_int_equal(ref.n, WORLD);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(ref.parts[i].rank == i && ref.parts[i].id == 16 + i);
    arena_done(&a);
}

static void a_batch_that_stays_knows_how_it_is_joined(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends_cut(w, 1, "{\"method\":\"add\",\"keep\":true}", "{\"x\":[1,2,3,4]}");
    for (uint32_t i = 0; i < WORLD; i++) {
        char args[32];
        snprintf(args, sizeof args, "{\"x\":[%u]}", i + 1);
        keeps(w, i, worker_takes(&w->workers[i], args), REF_BATCH);
    }
    (void)reference(w, &a, &ref);
    assert_int_equal(ref.form, REF_JOINED);
    assert_int_equal(ref.n, WORLD);
    arena_done(&a);
}

static void only_the_ranks_whose_results_count_are_in_it(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends(w, (struct call_text){.id = 1,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_SPLIT,
                                .execute = RECORD_ALL,
                                .head = "{\"method\":\"add\",\"keep\":true,\"collect\":{\"ranks\":[3,1]}}",
                                .args = "[1]"});
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r = takes(w, i, RECORD_CALL);
        assert_int_equal(r->h.flags, i % 2 ? 0 : RECORD_QUIET);
        if (i % 2)
            keeps(w, i, r->h.call, REF_JSON);
        else
            worker_says(&w->f, &w->workers[i], r->h.call, "");
        free(r);
    }
    (void)reference(w, &a, &ref);
    assert_int_equal(ref.n, 2);
    assert_int_equal(ref.parts[0].rank, 3);
    assert_int_equal(ref.parts[1].rank, 1);
    arena_done(&a);
}

static void what_does_not_go_with_it_is_refused(void **state)
{
    struct world *w = *state;
    sends_cut(w, 1, "{\"method\":\"add\",\"keep\":true,\"pad\":true}", "{\"x\":[1,2,3]}");
    hears_about(w, "1 ERROR INVALID ", "padding");
    sends(w, (struct call_text){.id = 2, .rank = 1, .head = KEEP, .flags = RECORD_QUIET});
    hears_about(w, "2 ERROR INVALID ", "no result");
    sends_group(w, 3, "{\"method\":\"add\",\"pin\":true}", "[1]");
    hears_about(w, "3 ERROR INVALID ", "set \"keep\", too");
    sends_group(w, 4, "{\"method\":\"add\",\"keep\":1}", "[1]");
    hears_about(w, "4 ERROR INVALID ", "true or false");
    gets_nothing(w, 1);
}

static void a_rank_that_does_not_say_what_it_keeps_is_told_on(void **state)
{
    struct world *w = *state;
    static const char *const answers[] = {"null", "[1,2]", "{\"id\":\"12\",\"bytes\":1,\"kind\":\"j\"}",
                                          "{\"id\":\"0000000000000001\",\"bytes\":-1,\"kind\":\"j\"}",
                                          "{\"id\":\"0000000000000001\",\"bytes\":1,\"kind\":\"x\"}"};
    for (uint32_t i = 0; i < ARRAY_LEN(answers); i++) {
        sends(w, (struct call_text){.id = i + 1, .rank = 1, .head = KEEP, .args = "[1]"});
        worker_says(&w->f, &w->workers[1], worker_takes(&w->workers[1], "[1]"), answers[i]);
        char want[32];
        snprintf(want, sizeof want, "%u ERROR INTERNAL *", i + 1);
        hears(w, want);
    }
}

static void what_was_kept_for_a_call_that_failed_is_freed(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    sends_group(w, 1, KEEP, "[1]");
    uint32_t ids[WORLD];
    for (uint32_t i = 0; i < WORLD; i++)
        ids[i] = worker_takes(&w->workers[i], "[1]");
    keeps(w, 0, ids[0], REF_JSON);
    assert_int_equal(
        worker_answer(&w->f, &w->workers[1], ids[1], RECORD_ERROR, "{\"code\":\"FAILED\",\"message\":\"no\"}", &err),
        0);
    hears(w, "1 ERROR rank=1 FAILED *");
    keeps(w, 2, ids[2], REF_JSON); // after the error
    is_told_to_free(w, 0, "{\"id\":\"0000000000000010\"}");
    gets_nothing(w, 1);
    is_told_to_free(w, 2, "{\"id\":\"0000000000000012\"}");
    gets_nothing(w, 3);
}

static void so_is_what_there_is_no_room_to_remember(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, KEEP, "[1]");
    uint32_t ids[WORLD];
    for (uint32_t i = 0; i < WORLD; i++)
        ids[i] = worker_takes(&w->workers[i], "[1]");
    struct quota *quota = w->c.session->quota;
    size_t left = quota_left(quota);
    assert_true(quota_charge(quota, left));
    keeps(w, 0, ids[0], REF_JSON);
    quota_refund(quota, left);
    hears(w, "1 ERROR LIMIT add() of ml/llama ran, but all results together exceed the memory of this client*");
    is_told_to_free(w, 0, "{\"id\":\"0000000000000010\"}");
    keeps(w, 3, ids[3], REF_JSON);
    is_told_to_free(w, 3, "{\"id\":\"0000000000000013\"}");
}

static void so_is_a_pinned_one(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){
                 .id = 1, .rank = 1, .head = "{\"method\":\"add\",\"keep\":true,\"pin\":true}", .args = "[1]"});
    uint32_t id = worker_takes(&w->workers[1], "[1]");
    assert_int_equal(client_cancel(&w->c, 1), 0);
    hears(w, "1 ERROR CANCELED *");
    free(takes(w, 1, RECORD_CANCEL));
    keeps(w, 1, id, REF_JSON);
    is_told_to_free(w, 1, "{\"id\":\"0000000000000011\",\"pinned\":true}");
}

// The end of the session

static void the_end_of_the_session_frees_what_it_made(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    (void)kept_by_all(w, &a);
    client_close(&w->c);
    for (uint32_t i = 0; i < WORLD; i++) {
        char want[64];
        snprintf(want, sizeof want, "{\"id\":\"%016x\"}", 16 + i);
        is_told_to_free(w, i, want);
    }
    arena_done(&a);
}

static void but_not_what_is_pinned(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends(w, (struct call_text){
                 .id = 1, .rank = 1, .head = "{\"method\":\"add\",\"keep\":true,\"pin\":true}", .args = "[1]"});
    keeps(w, 1, worker_takes(&w->workers[1], "[1]"), REF_JSON);
    (void)reference(w, &a, &ref);
    client_close(&w->c);
    gets_nothing(w, 1);
    arena_done(&a);
}

static void nor_what_was_freed_before(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    sends_group(w, 1, "{\"method\":\"object.free\"}", ref);
    uint32_t id = worker_takes(&w->workers[2], ref);
    worker_says(&w->f, &w->workers[2], id, "true");
    hears(w, "1 RESULT true");
    client_close(&w->c);
    gets_nothing(w, 2);
    arena_done(&a);
}

static void but_what_no_rank_has_freed_is_freed_at_its_end(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    sends_group(w, 1, "{\"method\":\"object.free\"}", ref);
    assert_int_equal(client_cancel(&w->c, 1), 0);
    hears_about(w, "1 ERROR CANCELED ", "before it was sent to a rank");
    w->f.router.config.member_calls = 0;
    sends_group(w, 2, "{\"method\":\"object.free\"}", ref);
    hears(w, "2 ERROR THROTTLED *");
    assert_int_equal(w->c.session->n_object_parts, 1);
    client_close(&w->c);
    is_told_to_free(w, 2, "{\"id\":\"0000000000000012\"}");
    gets_nothing(w, 2);
    arena_done(&a);
}

static void what_is_left_of_a_reference_that_lost_a_part_is_freed(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_all(w, &a);
    worker_hang_up(&w->f, &w->workers[3]);
    worker_start(&w->f, &w->workers[3], 3, 2);
    sends_group(w, 1, "{\"method\":\"object.get\"}", ref);
    hears_about(w, "1 ERROR GONE ", "ReferenceLost: rank 3 of ml/llama");
    gets_nothing(w, 0);
    assert_int_equal(w->c.session->n_object_parts, WORLD);
    sends_group(w, 2, "{\"method\":\"object.free\"}", ref);
    hears_about(w, "2 ERROR GONE ", "ReferenceLost: rank 3 of ml/llama");
    for (uint32_t i = 0; i < 3; i++) {
        char want[64];
        snprintf(want, sizeof want, "{\"id\":\"%016x\",\"pinned\":true}", 16 + i);
        is_told_to_free(w, i, want);
    }
    assert_int_equal(w->c.session->n_object_parts, 0);
    client_close(&w->c); // it has forgotten the reference
    for (uint32_t i = 0; i < WORLD; i++)
        gets_nothing(w, i);
    arena_done(&a);
}

static void a_reference_to_a_group_that_is_gone_is_forgotten_when_it_is_freed(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_all(w, &a);
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    sends_group(w, 1, "{\"method\":\"object.free\"}", ref);
    hears_about(w, "1 ERROR GONE ", "ReferenceLost: the WorkerGroup with UID " FIXTURE_UID);
    assert_int_equal(w->c.session->n_object_parts, 0);
    arena_done(&a);
}

// The methods of objects

static void get_goes_to_the_rank_that_has_it(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    sends_group(w, 1, "{\"method\":\"object.get\",\"timeoutMs\":5000}", ref);
    struct wire_record *r = takes(w, 2, RECORD_CALL);
    struct record_call call;
    struct err err = ERR_INIT;
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    assert_memory_equal(call.args, ref, call.args_len);
    assert_int_equal(r->h.flags, 0);
    worker_says(&w->f, &w->workers[2], r->h.call, "42");
    hears(w, "1 RESULT 42");
    gets_nothing(w, 0);
    free(r);
    arena_done(&a);
}

static void of_several_ranks_it_is_what_the_call_would_have_given(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_all(w, &a);
    sends_group(w, 1, "{\"method\":\"object.get\"}", ref);
    for (uint32_t i = 0; i < WORLD; i++) {
        char text[8];
        snprintf(text, sizeof text, "%u", i * 10);
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], ref), text);
    }
    hears(w, "1 RESULT [0,10,20,30]");
    arena_done(&a);
}

static void put_takes_one_rank_unless_it_is_split(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends_group(w, 1, "{\"method\":\"object.put\"}", "{\"x\":[1,2,3,4]}");
    uint32_t at = 0, id = 0;
    for (uint32_t i = 0; i < WORLD; i++)
        if ((id = worker_takes(&w->workers[i], "{\"x\":[1,2,3,4]}")) && (at = i, true))
            break;
    keeps(w, at, id, REF_JSON);
    (void)reference(w, &a, &ref);
    assert_int_equal(ref.n, 1);
    assert_int_equal(ref.parts[0].rank, at);
    sends(w, (struct call_text){.id = 2,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_DP_COMPUTE_PROTO,
                                .head = "{\"method\":\"object.put\"}",
                                .args = "{\"x\":[1,2,3,4]}"});
    for (uint32_t i = 0; i < WORLD; i++) {
        char args[32];
        snprintf(args, sizeof args, "{\"x\":[%u]}", i + 1);
        keeps(w, i, worker_takes(&w->workers[i], args), REF_JSON);
    }
    (void)reference(w, &a, &ref);
    assert_int_equal(ref.form, REF_JOINED);
    assert_int_equal(ref.n, WORLD);
    arena_done(&a);
}

static void a_wrong_argument_says_what_is_wanted(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    sends_group(w, 1, "{\"method\":\"object.get\"}", "[1]");
    hears_about(w, "1 ERROR INVALID ", "one reference as its argument");
    sends_group(w, 2, "{\"method\":\"object.get\"}", "{\"$ref\":\"cadre:1:nonsense\"}");
    hears_about(w, "2 ERROR INVALID ", "is not a reference that is known here");
    sends(w, (struct call_text){.id = 3, .rank = 1, .head = "{\"method\":\"object.get\"}", .args = ref});
    hears_about(w, "3 ERROR INVALID ", "goes to the rank that has the object");
    sends_group(w, 4, "{\"method\":\"object.eat\"}", ref);
    hears_about(w, "4 ERROR NOT_FOUND ", "object.put, object.get");
    sends_group(w, 5, "{\"method\":\"object.get\",\"keep\":true}", ref);
    hears_about(w, "5 ERROR INVALID ", "no new object");
    arena_done(&a);
}

// The owner of an object has changed

static void a_reference_of_an_attempt_that_is_over_is_lost(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    fixture_group(&w->f, WORLD, 2, NULL);
    for (uint32_t i = 0; i < WORLD; i++) {
        worker_hang_up(&w->f, &w->workers[i]);
        worker_start(&w->f, &w->workers[i], i, 2);
    }
    sends_group(w, 1, "{\"method\":\"object.get\"}", ref);
    hears_about(w, "1 ERROR GONE ", "ReferenceLost: rank 2 of ml/llama kept the object in attempt 1, which is over");
    sends_group(w, 2, "{\"method\":\"add\"}", ref);
    hears_about(w, "2 ERROR GONE ", "ReferenceLost: rank 2 of ml/llama");
    arena_done(&a);
}

static void so_is_one_of_a_rank_that_is_not_connected(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a);
    worker_hang_up(&w->f, &w->workers[2]);
    sends_group(w, 1, "{\"method\":\"object.get\"}", ref);
    hears_about(w, "1 ERROR GONE ", "ReferenceLost: rank 2 of ml/llama, attempt 1, which kept the object, is not");
    arena_done(&a);
}

static void so_is_one_of_a_group_that_is_gone(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref_part part = {.rank = 0, .attempt = 1, .id = 1, .bytes = 1, .kind = REF_JSON};
    struct ref ref = {.uid = "another", .form = REF_ONE, .n = 1, .parts = &part};
    struct buf text = BUF_INIT(1024);
    ref_write_json(&ref, &text);
    sends_group(w, 1, "{\"method\":\"object.get\"}", buf_str(&text));
    hears_about(w, "1 ERROR GONE ", "ReferenceLost: the WorkerGroup with UID another");
    buf_done(&text);
    arena_done(&a);
}

static void other_namespaces_are_not_reached(void **state)
{
    struct world *w = *state;
    struct ref_part part = {.rank = 0, .attempt = 1, .id = 1, .bytes = 1, .kind = REF_JSON};
    struct ref ref = {.uid = "theirs", .form = REF_ONE, .n = 1, .parts = &part};
    struct buf text = BUF_INIT(1024);
    router_group_set(&w->f.router,
                     &(struct group_facts){.uid = "theirs", .ns = "lab", .name = "g", .world = 1, .attempt = 1});
    ref_write_json(&ref, &text);
    sends_group(w, 1, "{\"method\":\"object.get\"}", buf_str(&text));
    hears_about(w, "1 ERROR FORBIDDEN ", "namespace lab");
    sends_group(w, 2, "{\"method\":\"add\"}", buf_str(&text));
    hears_about(w, "2 ERROR FORBIDDEN ", "namespace lab");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(a_rank_s_result_that_stays_there_is_a_reference),
        PROXY_TEST(those_of_all_ranks_are_one_reference),
        PROXY_TEST(a_batch_that_stays_knows_how_it_is_joined),
        PROXY_TEST(only_the_ranks_whose_results_count_are_in_it),
        PROXY_TEST(what_does_not_go_with_it_is_refused),
        PROXY_TEST(a_rank_that_does_not_say_what_it_keeps_is_told_on),
        PROXY_TEST(what_was_kept_for_a_call_that_failed_is_freed),
        PROXY_TEST(so_is_what_there_is_no_room_to_remember),
        PROXY_TEST(so_is_a_pinned_one),
        PROXY_TEST(the_end_of_the_session_frees_what_it_made),
        PROXY_TEST(but_not_what_is_pinned),
        PROXY_TEST(nor_what_was_freed_before),
        PROXY_TEST(but_what_no_rank_has_freed_is_freed_at_its_end),
        PROXY_TEST(what_is_left_of_a_reference_that_lost_a_part_is_freed),
        PROXY_TEST(a_reference_to_a_group_that_is_gone_is_forgotten_when_it_is_freed),
        PROXY_TEST(get_goes_to_the_rank_that_has_it),
        PROXY_TEST(of_several_ranks_it_is_what_the_call_would_have_given),
        PROXY_TEST(put_takes_one_rank_unless_it_is_split),
        PROXY_TEST(a_wrong_argument_says_what_is_wanted),
        PROXY_TEST(a_reference_of_an_attempt_that_is_over_is_lost),
        PROXY_TEST(so_is_one_of_a_rank_that_is_not_connected),
        PROXY_TEST(so_is_one_of_a_group_that_is_gone),
        PROXY_TEST(other_namespaces_are_not_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
