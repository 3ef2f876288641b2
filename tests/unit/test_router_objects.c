// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/str.h"
#include "common/wire/ref.h"
#include "tests/unit/proxy_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP "{\"method\":\"add\",\"keep\":true}"

// What a rank says that it keeps; the number of the object is 16 and its rank.
static void keeps(struct world *w, uint32_t rank, uint32_t id, char kind)
{
    char text[96];
    snprintf(text, sizeof text, "{\"id\":\"%016x\",\"bytes\":5,\"kind\":\"%c\"}", 16 + rank, kind);
    worker_says(&w->f, &w->workers[rank], id, text);
}

static void all_keep(struct world *w, const char *args, char kind)
{
    for (uint32_t i = 0; i < WORLD; i++)
        keeps(w, i, worker_takes(&w->workers[i], args), kind);
}

// The reference of the next answer.
static const char *reference(struct world *w, struct arena *a, struct ref *ret)
{
    const char *got = controller_hears(&w->c), *json = got ? strchr(got, '{') : NULL;
    struct ref_found f;
    struct err err = ERR_INIT;
    if (!json || !ref_is(json, strlen(json), &f))
        fail_msg("%s is no answer with a reference", got ? got : "nothing");
    const char *text = arena_strndup(a, f.json, f.len);
    assert_int_equal(ref_parse(f.text, f.text_len, a, ret, &err), 0);
    return text;
}

static const char *kept_by_all(struct world *w, struct arena *a)
{
    struct ref ref;
    sends_group(w, 90, KEEP, "[1]");
    all_keep(w, "[1]", REF_JSON);
    return reference(w, a, &ref);
}

static const char *kept_by_one(struct world *w, struct arena *a)
{
    struct ref ref;
    sends(w, (struct call_text){.id = 91, .rank = 2, .head = KEEP, .args = "[1]"});
    keeps(w, 2, worker_takes(&w->workers[2], "[1]"), REF_JSON);
    return reference(w, a, &ref);
}

static struct wire_record *takes(struct world *w, uint32_t rank, enum record_type type)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    if (!r || r->h.type != type)
        fail_msg("rank %u got %s, not a %s", rank, r ? record_type_name(r->h.type) : "nothing", record_type_name(type));
    return r;
}

static void is_told_to_free(struct world *w, uint32_t rank, const char *body)
{
    struct wire_record *r = takes(w, rank, RECORD_FREE);
    assert_string_equal(r->body, body);
    free(r);
}

static void gets_nothing(struct world *w, uint32_t rank)
{
    assert_null(wire_next(&w->workers[rank].wire));
}

// A batch for the group.
static void sends_cut(struct world *w, uint32_t id, const char *head, const char *args)
{
    sends(w, (struct call_text){.id = id,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_DP_COMPUTE_PROTO,
                                .execute = RECORD_ALL,
                                .head = head,
                                .args = args});
}

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
    hears_about(w, "3 ERROR INVALID ", "\"keep\" goes with it");
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
    keeps(w, 2, ids[2], REF_JSON); // later than the error
    is_told_to_free(w, 0, "{\"id\":\"0000000000000010\"}");
    gets_nothing(w, 1);
    is_told_to_free(w, 2, "{\"id\":\"0000000000000012\"}");
    gets_nothing(w, 3);
}

static void so_is_a_pinned_one(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){
                 .id = 1, .rank = 1, .head = "{\"method\":\"add\",\"keep\":true,\"pin\":true}", .args = "[1]"});
    uint32_t id = worker_takes(&w->workers[1], "[1]");
    assert_int_equal(controller_cancel(&w->c, 1), 0);
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
    controller_close(&w->c);
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
    controller_close(&w->c);
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
    controller_close(&w->c);
    gets_nothing(w, 2);
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

static void put_takes_one_rank_unless_it_is_dealt_out(void **state)
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
    hears_about(w, "2 ERROR INVALID ", "is no reference that is known here");
    sends(w, (struct call_text){.id = 3, .rank = 1, .head = "{\"method\":\"object.get\"}", .args = ref});
    hears_about(w, "3 ERROR INVALID ", "where the object is");
    sends_group(w, 4, "{\"method\":\"object.eat\"}", ref);
    hears_about(w, "4 ERROR NOT_FOUND ", "object.put, object.get");
    sends_group(w, 5, "{\"method\":\"object.get\",\"keep\":true}", ref);
    hears_about(w, "5 ERROR INVALID ", "no new object");
    arena_done(&a);
}

// What has become of the owner

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

// References in arguments

// The next CALL of a rank must have a reference to what that rank keeps. It is answered, its arguments are returned.
static const char *takes_reference(struct world *w, uint32_t rank, uint32_t of_rank, struct arena *a)
{
    struct wire_record *r = takes(w, rank, RECORD_CALL);
    struct record_call call;
    struct ref_found f;
    struct ref ref;
    struct err err = ERR_INIT;
    size_t at = 0;
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    assert_int_equal(r->h.flags, RECORD_REFS);
    assert_true(ref_next(call.args, call.args_len, &at, &f));
    assert_int_equal(ref_parse(f.text, f.text_len, a, &ref, &err), 0);
    assert_int_equal(ref.n, 1);
    assert_int_equal(ref.parts[0].rank, of_rank);
    assert_true(strlen("10.0.0.7:4711") == f.at_len && memcmp(f.at, "10.0.0.7:4711", f.at_len) == 0);
    assert_true(ref_key_good("secret", ref.parts[0].id, f.until, f.key, f.key_len));
    assert_true(f.until > 0);
    assert_non_null(strstr(arena_strndup(a, f.owner, f.owner_len), "ml/llama in pod llama-"));
    const char *args = arena_strndup(a, call.args, call.args_len);
    worker_says(&w->f, &w->workers[rank], r->h.call, "null");
    free(r);
    return args;
}

static void an_argument_s_consumer_is_told_where_the_object_is(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_one(w, &a), *args = arena_printf(&a, "{\"x\": %s, \"y\": [7]}", ref);
    sends_group(w, 1, "{\"method\":\"add\"}", args);
    for (uint32_t i = 0; i < WORLD; i++) {
        const char *got = takes_reference(w, i, 2, &a);
        assert_true(str_starts(got, "{\"x\": {\"$ref\":\"cadre:1:"));
        assert_true(str_ends(got, "}, \"y\": [7]}"));
    }
    hears(w, "1 RESULT [null,null,null,null]");
    arena_done(&a);
}

static void parts_are_dealt_out_to_as_many_ranks(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *ref = kept_by_all(w, &a);
    sends_cut(w, 1, "{\"method\":\"add\"}", ref); // a batch
    for (uint32_t i = 0; i < WORLD; i++)
        (void)takes_reference(w, i, i, &a);
    hears(w, "1 RESULT null");
    sends_group(w, 2, "{\"method\":\"each\"}", ref); // a list
    for (uint32_t i = 0; i < WORLD; i++)
        (void)takes_reference(w, i, i, &a);
    hears(w, "2 RESULT [null,null,null,null]");
    arena_done(&a);
}

static const char *next_args(struct world *w, uint32_t rank, struct arena *a)
{
    struct wire_record *r = takes(w, rank, RECORD_CALL);
    struct record_call call;
    struct err err = ERR_INIT;
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    assert_int_equal(r->h.flags & RECORD_REFS, RECORD_REFS);
    const char *args = arena_strndup(a, call.args, call.args_len);
    worker_says(&w->f, &w->workers[rank], r->h.call, "null");
    free(r);
    return args;
}

static void assert_joins(const char *args, uint32_t first, uint32_t n)
{
    struct arena a = ARENA_INIT;
    struct ref_found f;
    struct err err = ERR_INIT;
    size_t at = 0;
    assert_true(str_starts(args, REF_JOIN "["));
    for (uint32_t i = 0; i < n; i++) {
        struct ref ref;
        assert_true(ref_next(args, strlen(args), &at, &f));
        assert_int_equal(ref_parse(f.text, f.text_len, &a, &ref, &err), 0);
        assert_int_equal(ref.n, 1);
        assert_int_equal(ref.parts[0].rank, first + i);
        assert_non_null(f.at);
    }
    assert_false(ref_next(args, strlen(args), &at, &f));
    arena_done(&a);
}

static void a_batch_in_parts_is_joined_where_fewer_pieces_are_wanted(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    sends_cut(w, 90, KEEP, "{\"x\":[1,2,3,4]}");
    for (uint32_t i = 0; i < WORLD; i++) {
        char args[32];
        snprintf(args, sizeof args, "{\"x\":[%u]}", i + 1);
        keeps(w, i, worker_takes(&w->workers[i], args), REF_JSON);
    }
    const char *text = reference(w, &a, &ref);
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD, .args = text}); // all to one
    assert_joins(next_args(w, 1, &a), 0, 4);
    hears(w, "1 RESULT null");
    sends(w, (struct call_text){.id = 2,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_SPLIT,
                                .execute = RECORD_ALL,
                                .head = "{\"method\":\"add\",\"split\":{\"index\":[0,0,1,1]}}",
                                .args = text}); // two pieces of two parts
    for (uint32_t i = 0; i < WORLD; i++)
        assert_joins(next_args(w, i, &a), i / 2 * 2, 2);
    hears(w, "2 RESULT null");
    sends_group(w, 3, ADD, arena_printf(&a, "[%s]", text)); // not among others
    hears_about(w, "3 ERROR INVALID ", "the reference has 4 parts");
    arena_done(&a);
}

static void each_rank_may_have_a_reference_of_its_own(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *one = kept_by_one(w, &a), *args = arena_printf(&a, "[[1], %s, [2], %s]", one, one);
    sends_group(w, 1, "{\"method\":\"each\"}", args);
    for (uint32_t i = 0; i < WORLD; i += 2)
        free(takes(w, i, RECORD_CALL));
    (void)takes_reference(w, 1, 2, &a);
    (void)takes_reference(w, 3, 2, &a);
    arena_done(&a);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *one = kept_by_one(w, &a), *all = kept_by_all(w, &a);
    sends_cut(w, 1, "{\"method\":\"add\"}", one);
    hears_about(w, "1 ERROR INVALID ", "the reference has 1 part, the call deals out 4 pieces");
    sends_group(w, 2, "{\"method\":\"add\"}", all);
    hears_about(w, "2 ERROR INVALID ", "the reference has 4 parts, and each rank can only get one of them here");
    sends_cut(w, 3, "{\"method\":\"add\",\"pad\":true}", all);
    hears_about(w, "3 ERROR INVALID ", "padded");
    gets_nothing(w, 0);
    arena_done(&a);
}

static void what_a_caller_says_of_the_place_counts_for_nothing(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    struct ref ref;
    struct err err = ERR_INIT;
    struct ref_found f;
    const char *one = kept_by_one(w, &a);
    assert_true(ref_is(one, strlen(one), &f));
    assert_int_equal(ref_parse(f.text, f.text_len, &a, &ref, &err), 0);
    const char *args = arena_printf(&a, "[{\"$ref\":\"%.*s\",\"at\":\"6.6.6.6:1\",\"key\":\"k\",\"owner\":\"me\"}]",
                                    (int)f.text_len, f.text);
    sends_group(w, 1, "{\"method\":\"add\"}", args);
    for (uint32_t i = 0; i < WORLD; i++)
        (void)takes_reference(w, i, 2, &a); // with the proxy's own words
    arena_done(&a);
}

static void json_that_only_looks_like_one_passes_as_it_is(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"add\"}", "[{\"$ref\":\"#/definitions/a\"}]");
    struct wire_record *r = takes(w, 0, RECORD_CALL);
    assert_int_equal(r->h.flags, 0);
    assert_non_null(strstr(r->body + 4, "[{\"$ref\":\"#/definitions/a\"}]"));
    free(r);
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
        PROXY_TEST(so_is_a_pinned_one),
        PROXY_TEST(the_end_of_the_session_frees_what_it_made),
        PROXY_TEST(but_not_what_is_pinned),
        PROXY_TEST(nor_what_was_freed_before),
        PROXY_TEST(get_goes_to_the_rank_that_has_it),
        PROXY_TEST(of_several_ranks_it_is_what_the_call_would_have_given),
        PROXY_TEST(put_takes_one_rank_unless_it_is_dealt_out),
        PROXY_TEST(a_wrong_argument_says_what_is_wanted),
        PROXY_TEST(a_reference_of_an_attempt_that_is_over_is_lost),
        PROXY_TEST(so_is_one_of_a_rank_that_is_not_connected),
        PROXY_TEST(so_is_one_of_a_group_that_is_gone),
        PROXY_TEST(other_namespaces_are_not_reached),
        PROXY_TEST(an_argument_s_consumer_is_told_where_the_object_is),
        PROXY_TEST(parts_are_dealt_out_to_as_many_ranks),
        PROXY_TEST(a_batch_in_parts_is_joined_where_fewer_pieces_are_wanted),
        PROXY_TEST(each_rank_may_have_a_reference_of_its_own),
        PROXY_TEST(numbers_that_do_not_fit_are_refused),
        PROXY_TEST(what_a_caller_says_of_the_place_counts_for_nothing),
        PROXY_TEST(json_that_only_looks_like_one_passes_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
