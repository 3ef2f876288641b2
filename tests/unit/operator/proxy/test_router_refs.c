// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/str.h"
#include "tests/unit/operator/proxy/proxy_objects.h"
#include "tests/unit/support/text_ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// References in arguments

// The next CALL of the rank must have a reference to the object that this rank keeps. Answers the call, and returns its
// arguments.
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
        assert_true(text_ends(got, "}, \"y\": [7]}"));
    }
    hears(w, "1 RESULT [null,null,null,null]");
    arena_done(&a);
}

static void parts_are_distributed_to_as_many_ranks(void **state)
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
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD, .args = text}); // all parts to one rank
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
    sends_group(w, 3, ADD, arena_printf(&a, "[%s]", text)); // not next to other arguments
    hears_about(w, "3 ERROR INVALID ", "the reference has 4 parts");
    sends(w, (struct call_text){.id = 4,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_SPLIT,
                                .execute = RECORD_ALL,
                                .head = "{\"method\":\"add\",\"split\":{\"index\":[0,1,2,2]}}",
                                .args = text}); // with three pieces, no rank would see whole rows
    hears_about(w, "4 ERROR INVALID ",
                "the reference has 4 parts, the call has 3 pieces, and Cadre does not split parts");
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

// Sends the head and so many bytes of the arguments. The rest is in shared memory, and can be read already.
static int sends_first(struct world *w, uint32_t id, size_t n, const char *next, size_t next_len)
{
    static const char first[] = "\x10\0\0\0{\"method\":\"add\"}[1,2,3, ";
    const size_t len = 20 + n;
    const struct record r = {
        .h = {.type = RECORD_CALL, .call = id, .rank = 1, .flags = RECORD_MORE, .len = (uint32_t)len},
        .body = first,
        .len = len,
        .next = next,
        .next_len = next_len,
        .next_last = next != NULL,
        .seq = id};
    struct err err = ERR_INIT;
    return session_record(w->c.session, &r, UINT64_MAX, &err);
}

static void what_lies_in_shared_memory_is_looked_at_there(void **state)
{
    struct world *w = *state;
    w->f.router.config.whole_json = REF_ARGS_MAX;
    static const char ref[] = "{\"$ref\":\"cadre:1:x\"}]", none[] = "{\"$reg\":4}]";
    assert_int_equal(sends_first(w, 1, 8, NULL, 0), ROUTER_COLLECT); // nobody knows what follows
    assert_int_equal(sends_first(w, 1, 8, ref, strlen(ref)), ROUTER_COLLECT);
    assert_int_equal(w->f.router.n_calls, 0);
    // It contains no reference, and is passed on while it arrives.
    assert_int_equal(sends_first(w, 1, 8, none, strlen(none)), 0);
    assert_int_equal(w->f.router.n_calls, 1);
    client_cancel(&w->c, 1);
    hears_about(w, "1 ERROR CANCELED", "add()");
}

// None of it is taken before it is known to pass. Otherwise the rank would have to put it together again.
static void a_batch_in_shared_memory_passes_in_one_segment(void **state)
{
    struct world *w = *state;
    w->f.router.config.whole_json = REF_ARGS_MAX;
    assert_int_equal(sends_first(w, 1, 0, NULL, 0), ROUTER_COLLECT);
    assert_int_equal(w->c.session->peer.want, 20); // the head, and enough to see what follows
    assert_int_equal(sends_first(w, 1, 0, "\x02\0\0\0\0\0\0\0{}", 10), 0);
    assert_int_equal(w->f.router.n_calls, 1);
    client_cancel(&w->c, 1);
    hears_about(w, "1 ERROR CANCELED", "add()");
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    const char *one = kept_by_one(w, &a), *all = kept_by_all(w, &a);
    sends_cut(w, 1, "{\"method\":\"add\"}", one);
    hears_about(
        w, "1 ERROR INVALID ",
        "the reference has 1 part, the call has 4 pieces, and Cadre does not split parts. Either produce it in 4 "
        "pieces "
        "(with a split), or pass it to a ONE_TO_ALL method, where every rank gets all of it, or call object.get and "
        "pass the value, which the proxy splits");
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
        (void)takes_reference(w, i, 2, &a); // the error is the proxy's own
    arena_done(&a);
}

// So many references that they are looked up in steps.
static void sends_many(struct world *w, uint32_t id, const char *ref)
{
    enum { MANY = 1000 };
    struct buf args = BUF_INIT(1 << 20);
    for (int i = 0; i < MANY; i++)
        buf_printf(&args, "%s%s", i ? "," : "[", ref);
    buf_puts(&args, "]");
    sends(w, (struct call_text){.id = id, .rank = 0, .head = ADD, .args = buf_str(&args)});
    buf_done(&args);
}

static void an_owner_may_be_lost_while_references_to_it_are_looked_up(void **state)
{
    enum { PLACES = 24 }; // at which the work may stop
    struct world *w = *state;
    struct arena a = ARENA_INIT;
    for (uint32_t attempt = 1; attempt < PLACES; attempt++) {
        sends_many(w, 1, kept_by_one(w, &a));
        for (uint32_t i = 0; i < attempt; i++)
            router_turn(&w->f.router);
        worker_hang_up(&w->f, &w->workers[2]);
        fixture_turns(&w->f);
        hears_about(w, "1 ERROR GONE ", "which kept the object, is not connected");
        worker_start(&w->f, &w->workers[2], 2, attempt + 1);
    }
    gets_nothing(w, 0);
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
        PROXY_TEST(an_argument_s_consumer_is_told_where_the_object_is),
        PROXY_TEST(parts_are_distributed_to_as_many_ranks),
        PROXY_TEST(what_lies_in_shared_memory_is_looked_at_there),
        PROXY_TEST(a_batch_in_shared_memory_passes_in_one_segment),
        PROXY_TEST(a_batch_in_parts_is_joined_where_fewer_pieces_are_wanted),
        PROXY_TEST(each_rank_may_have_a_reference_of_its_own),
        PROXY_TEST(numbers_that_do_not_fit_are_refused),
        PROXY_TEST(what_a_caller_says_of_the_place_counts_for_nothing),
        PROXY_TEST(an_owner_may_be_lost_while_references_to_it_are_looked_up),
        PROXY_TEST(json_that_only_looks_like_one_passes_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
