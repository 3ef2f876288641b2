// SPDX-License-Identifier: Apache-2.0
// Bodies that pass through the proxy while they arrive: which peer gets what and when, which one is told to hold, and
// what is left if the body ends too soon.
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "tests/unit/operator/proxy/proxy_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADD "{\"method\":\"add\"}"
#define MIB ((size_t)1 << 20)

enum { WORLD = 2 };

struct world {
    struct proxy_fixture f;
    struct client c;
    struct worker workers[WORLD];
};

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    struct router_config limits = fixture_limits;
    limits.pause_mark = 2 * MIB;
    limits.resume_mark = MIB;
    fixture_init(&w->f, &limits);
    fixture_group(&w->f, WORLD, 1, NULL);
    client_open(&w->f, &w->c, "llama");
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    client_close(&w->c);
    for (int i = 0; i < WORLD; i++)
        worker_hang_up(&w->f, &w->workers[i]);
    fixture_done(&w->f);
    free(w);
    return 0;
}

// Sending

static void sends(struct world *w, struct call_pieces *b, size_t n)
{
    struct err err = ERR_INIT;
    if (call_pieces_send(&w->c, b, n, &err) != 0)
        fail_msg("%s", err.msg);
}

static void sends_rest(struct world *w, struct call_pieces *b)
{
    sends(w, b, b->len - b->at);
}

static void hears(struct world *w, const char *pattern)
{
    const char *got = client_hears(&w->c);
    size_t n = strcspn(pattern, "*");
    if (!got || strncmp(got, pattern, n) != 0 || (!pattern[n] && got[n]))
        fail_msg("%s came, not %s", got ? got : "nothing", pattern);
}

static void takes_cancel(struct world *w, uint32_t rank)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_CANCEL);
    free(r);
    assert_null(wire_next(&w->workers[rank].wire));
}

// Takes a HOLD or GO.
static bool told(struct wire *wire, enum record_type type)
{
    struct wire_record *r = wire_next(wire);
    bool is = r && r->h.type == type;
    free(r);
    return is;
}

static char *many(size_t len)
{
    char *p = xmalloc(len);
    memset(p, ' ', len);
    p[0] = '[';
    p[len - 1] = ']';
    return p;
}

// Arguments

static void ranks_get_it_while_it_comes_and_run_it_when_it_is_whole(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    assert_false(record_reader_unfinished(&w->workers[0].wire.reader) == UINT64_MAX); // a part has arrived already
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++) {
        uint32_t id = worker_takes(&w->workers[i], "[1,2,3]");
        worker_says(&w->f, &w->workers[i], id, i ? "8" : "7");
    }
    hears(w, "1 RESULT [7,8]");
}

static void an_id_is_in_use_before_its_call_is_whole(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct call_pieces first = call_pieces(5, ADD, "[1,2,3]", 7), second = call_pieces(5, ADD, "[4]", 3);
    first.rank = 0;
    second.rank = 1;
    sends(w, &first, first.len - 3);
    assert_int_equal(call_pieces_send(&w->c, &second, second.len, &err), ERR_PROTO);
    assert_string_equal(err.msg, "call id 5 is in use by a call that is not answered");
    assert_int_equal(worker_takes(&w->workers[1], ""), 0);
    free(first.bytes);
}

static void a_piece_is_held_once_for_all_ranks(void **state)
{
    struct world *w = *state;
    char *args = many(MIB);
    struct call_pieces b = call_pieces(1, ADD, args, MIB);
    sends(w, &b, b.len - 1);
    assert_in_range(quota_used(w->c.session->quota), MIB, MIB + 4096);
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++)
        free(wire_next(&w->workers[i].wire));
    assert_in_range(quota_used(w->c.session->quota), 0, 4096);
    free(args);
}

// Each of the ranks' queues keeps a part for each piece, which is more than the bytes of a short piece.
static void what_the_queues_of_the_ranks_keep_for_short_pieces_is_charged(void **state)
{
    enum { PIECES = 5000 };
    struct world *w = *state;
    char *args = many(PIECES + 1);
    struct call_pieces b = call_pieces(1, ADD, args, PIECES);
    size_t parts = 0;
    args[PIECES] = 0;
    sends(w, &b, b.len - PIECES + 1);
    size_t before = quota_used(w->c.session->quota);
    while (b.at < b.len - 1)
        sends(w, &b, 1);
    for (uint32_t i = 0; i < WORLD; i++)
        parts += (PIECES - 2) * sizeof(struct record_part);
    assert_true(quota_used(w->c.session->quota) >= before + parts + (PIECES - 2) * (size_t)256);
    for (uint32_t i = 0; i < WORLD; i++)
        wire_pass(&w->workers[i].wire);
    assert_in_range(quota_used(w->c.session->quota), 0, 8192);
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(worker_takes(&w->workers[i], args));
    free(args);
}

static void the_slowest_rank_has_the_sender_told_to_hold_it(void **state)
{
    struct world *w = *state;
    char *args = many(4 * MIB);
    struct call_pieces b = call_pieces(1, ADD, args, 4 * MIB);
    sends(w, &b, MIB);
    assert_null(wire_next(&w->c.wire));
    sends(w, &b, MIB + 1);
    assert_true(told(&w->c.wire, RECORD_HOLD));
    assert_true(w->c.session->peer.read); // other calls get through
    (void)wire_next(&w->workers[0].wire);
    router_turn(&w->f.router);
    assert_null(wire_next(&w->c.wire)); // the other rank has read nothing
    (void)wire_next(&w->workers[1].wire);
    router_turn(&w->f.router);
    assert_true(told(&w->c.wire, RECORD_GO));
    sends_rest(w, &b);
    assert_null(wire_next(&w->c.wire)); // all of it has arrived, so there is nothing to hold
    free(args);
}

static void several_that_are_held_do_not_hold_up_each_other(void **state)
{
    struct world *w = *state;
    struct call_pieces b[3];
    char *args = many(3 * MIB);
    for (uint32_t i = 0; i < 3; i++) {
        b[i] = call_pieces(i + 1, ADD, args, 3 * MIB);
        sends(w, &b[i], 2 * MIB + 1);
        assert_true(told(&w->c.wire, RECORD_HOLD));
        router_turn(&w->f.router);
    }
    for (uint32_t i = 0; i < WORLD; i++)
        (void)wire_next(&w->workers[i].wire);
    router_turn(&w->f.router);
    for (int i = 0; i < 3; i++)
        assert_true(told(&w->c.wire, RECORD_GO));
    for (int i = 0; i < 3; i++)
        free(b[i].bytes);
    free(args);
}

static void a_cancel_in_the_middle_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_null(wire_next(&w->workers[0].wire)); // the first rank has a part, the other one nothing
    // It is told even if its queue is full, because otherwise it would wait for ever.
    w->workers[0].wire.out.queue.max_bytes = 0;
    client_cancel(&w->c, 1);
    hears(w, "1 ERROR CANCELED*");
    takes_cancel(w, 0);
    assert_null(wire_next(&w->workers[1].wire));
    assert_int_equal(w->f.router.n_calls, 0); // no rank has to answer
    sends_rest(w, &b);                        // the client has not heard the error yet
    assert_null(client_hears(&w->c));
}

static void a_caller_that_goes_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_null(wire_next(&w->workers[0].wire));
    client_close(&w->c);
    takes_cancel(w, 0);
    assert_int_equal(w->f.router.n_calls, 0);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
    free(b.bytes);
}

static void a_rank_that_dies_ends_it_for_the_others(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_null(wire_next(&w->workers[0].wire));
    worker_hang_up(&w->f, &w->workers[1]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 137, NULL);
    hears(w, "1 ERROR rank=1 exit=137 UNAVAILABLE rank 1 of ml/llama (pod llama-1-0 on node n1) exited with code 137 "
             "while add() was pending; its ranks received only a part of its arguments, and it has not run");
    assert_true(w->c.unsent);
    takes_cancel(w, 0);
    assert_int_equal(w->f.router.n_calls, 0);
    sends_rest(w, &b);
}

static void a_deadline_in_the_middle_says_so(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, "{\"method\":\"add\",\"timeoutMs\":50}", "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_null(wire_next(&w->workers[1].wire));
    fixture_pass(&w->f, 50);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 50 ms: its arguments have not arrived completely");
    takes_cancel(w, 1);
    free(b.bytes);
}

static void an_answer_before_the_end_of_the_arguments_is_refused(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_null(wire_next(&w->workers[0].wire));
    assert_int_equal(worker_answer(&w->f, &w->workers[0], w->f.router.last_id, RECORD_RESULT, "1", &err), ERR_PROTO);
    assert_non_null(strstr(err.msg, "before it has all of it"));
    client_cancel(&w->c, 1);
    hears(w, "1 ERROR CANCELED*");
    free(b.bytes);
}

static void a_refused_call_is_refused_at_once_and_its_rest_passed_over(void **state)
{
    struct world *w = *state;
    struct call_pieces b = call_pieces(1, "{\"method\":\"add\",\"group\":\"none\"}", "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    hears(w, "1 ERROR NOT_FOUND*");
    sends_rest(w, &b);
    assert_null(client_hears(&w->c));
}

static void those_behind_it_keep_the_order_and_those_of_others_need_not(void **state)
{
    struct world *w = *state;
    struct client other;
    struct err err = ERR_INIT;
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    client_open(&w->f, &other, "llama");
    sends(w, &b, b.len - 3);
    assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    const struct call_text small = {.id = 2, .rank = 0, .head = ADD, .args = "[4]"};
    assert_int_equal(client_send(&w->c, &small, &err), 0);
    assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    assert_int_equal(client_send(&other, &small, &err), 0);
    assert_int_not_equal(worker_takes(&w->workers[0], "[4]"), 0);
    sends_rest(w, &b);
    assert_int_not_equal(worker_takes(&w->workers[0], "[1,2,3]"), 0);
    assert_int_not_equal(worker_takes(&w->workers[0], "[4]"), 0);
    client_close(&other);
}

// Results

static int say(struct world *w, uint32_t rank, uint32_t id, const char *bytes, size_t at, size_t n, bool last)
{
    struct err err = ERR_INIT;
    const struct record r = {
        .h = {.type = RECORD_RESULT, .call = id, .rank = rank, .flags = last ? 0 : RECORD_MORE, .len = (uint32_t)n},
        .body = bytes + at,
        .len = n,
        .offset = at};
    return router_member_record(&w->f.router, w->workers[rank].member, &r, &err);
}

static uint32_t ask_rank(struct world *w, uint32_t id, uint32_t rank)
{
    struct err err = ERR_INIT;
    assert_int_equal(client_send(&w->c, &(struct call_text){.id = id, .rank = rank, .head = ADD, .args = "[]"}, &err),
                     0);
    return worker_takes(&w->workers[rank], "[]");
}

static void a_result_of_one_rank_passes_through(void **state)
{
    struct world *w = *state;
    uint32_t id = ask_rank(w, 1, 1);
    assert_int_equal(say(w, 1, id, "[1,2]", 0, 2, false), 0);
    assert_null(client_hears(&w->c));
    assert_false(record_reader_unfinished(&w->c.wire.reader) == UINT64_MAX);
    assert_int_equal(say(w, 1, id, "[1,2]", 2, 3, true), 0);
    hears(w, "1 RESULT [1,2]");
}

static void a_slow_caller_has_the_rank_told_to_hold_it(void **state)
{
    struct world *w = *state;
    char *result = many(4 * MIB);
    uint32_t id = ask_rank(w, 1, 1);
    assert_int_equal(say(w, 1, id, result, 0, MIB, false), 0);
    assert_null(wire_next(&w->workers[1].wire));
    assert_int_equal(say(w, 1, id, result, MIB, MIB + 1, false), 0);
    assert_true(told(&w->workers[1].wire, RECORD_HOLD));
    assert_null(wire_next(&w->c.wire)); // the client reads it
    router_turn(&w->f.router);
    assert_true(told(&w->workers[1].wire, RECORD_GO));
    assert_int_equal(say(w, 1, id, result, 2 * MIB + 1, 2 * MIB - 1, true), 0);
    struct wire_record *r = wire_next(&w->c.wire);
    assert_int_equal(r->len, 4 * MIB);
    free(r);
    free(result);
}

static size_t full(struct wire *wire)
{
    size_t had = wire->out.queue.max_bytes;
    wire->out.queue.max_bytes = wire->out.queue.bytes;
    return had;
}

static void a_rank_that_was_held_is_told_so_even_when_nobody_waits_for_it_any_more(void **state)
{
    struct world *w = *state;
    struct wire *rank = &w->workers[1].wire;
    char *result = many(4 * MIB);
    uint32_t id = ask_rank(w, 1, 1);
    assert_int_equal(say(w, 1, id, result, 0, 2 * MIB + 1, false), 0);
    assert_true(told(rank, RECORD_HOLD));
    size_t had = full(rank);
    client_cancel(&w->c, 1);
    hears(w, "1 ERROR CANCELED*");
    router_turn(&w->f.router);
    takes_cancel(w, 1); // the cancel gets through
    rank->out.queue.max_bytes = had;
    router_turn(&w->f.router);
    assert_true(told(rank, RECORD_GO));
    assert_int_equal(say(w, 1, id, result, 2 * MIB + 1, 2 * MIB - 1, true), 0);
    free(result);
}

// The connection of the rank is about to close, but its queue still exists.
static void leaves(struct world *w, struct worker *left)
{
    router_leave(&w->f.router, left->member);
    left->member = NULL;
}

static void queue_ends(struct worker *left)
{
    record_writer_done(&left->wire.out);
    record_reader_done(&left->wire.reader);
}

static void arguments_for_a_rank_that_has_just_left_find_no_room(void **state)
{
    struct world *w = *state;
    struct worker *left = &w->workers[0];
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    assert_int_equal(worker_takes(left, ""), 0); // it has a part
    full(&left->wire);
    leaves(w, left);
    sends_rest(w, &b);
    hears(w, "1 ERROR THROTTLED add(): rank 0 of ml/llama has no room*");
    queue_ends(left);
    fixture_pass(&w->f, 200);
    assert_null(wire_next(&w->c.wire));
}

static void arguments_for_a_rank_that_has_left_without_any_of_them_go_to_the_others_only(void **state)
{
    struct world *w = *state;
    struct worker *left = &w->workers[0];
    struct call_pieces b = call_pieces(1, ADD, "[1,2,3]", 7);
    sends(w, &b, b.len - 3);
    leaves(w, left);
    sends_rest(w, &b);
    assert_null(wire_next(&left->wire));
    assert_int_not_equal(worker_takes(&w->workers[1], "[1,2,3]"), 0);
    queue_ends(left);
    fixture_pass(&w->f, 200);
    hears(w, "1 ERROR rank=0 UNAVAILABLE *");
    assert_false(w->c.unsent); // the other rank may have run it
}

static void a_death_ends_a_result_that_has_begun(void **state)
{
    struct world *w = *state;
    uint32_t id = ask_rank(w, 1, 1);
    assert_int_equal(say(w, 1, id, "[1,2]", 0, 2, false), 0);
    assert_null(client_hears(&w->c));
    worker_hang_up(&w->f, &w->workers[1]);
    fixture_pass(&w->f, 200);
    hears(w, "1 ERROR rank=1 UNAVAILABLE*");
    assert_true(record_reader_unfinished(&w->c.wire.reader) == UINT64_MAX);
}

static void a_cancel_ends_a_result_that_has_begun(void **state)
{
    struct world *w = *state;
    uint32_t id = ask_rank(w, 1, 1);
    assert_int_equal(say(w, 1, id, "[1,2]", 0, 2, false), 0);
    assert_null(client_hears(&w->c));
    client_cancel(&w->c, 1);
    hears(w, "1 ERROR CANCELED*");
    assert_true(record_reader_unfinished(&w->c.wire.reader) == UINT64_MAX);
    assert_int_equal(say(w, 1, id, "[1,2]", 2, 3, true), 0); // the rank need not know
    assert_null(client_hears(&w->c));
}

// Batches

static char *document(const char *head, const char *values, size_t n_values, size_t *ret_len)
{
    size_t len = strlen(head);
    char *doc = xcalloc(1, 8 + len + n_values);
    doc[0] = (char)(len & 0xff);
    doc[1] = (char)(len >> 8);
    memcpy(doc + 8, head, len);
    memcpy(doc + 8 + len, values, n_values);
    *ret_len = 8 + len + n_values;
    return doc;
}

// Padding repeats the row once all of it has arrived. Until then, the client must be read.
static void a_row_that_padding_repeats_may_be_longer_than_what_may_wait(void **state)
{
    enum { ROW = 3 << 20 };
    struct world *w = *state;
    char head[128], *values = many(ROW);
    size_t len;
    w->f.router.config.high_mark = MIB;
    w->f.router.config.low_mark = w->f.router.config.pause_mark = MIB / 2;
    w->f.router.config.resume_mark = MIB / 4;
    snprintf(head, sizeof head, "{\"x\":{\"dtype\":\"U8\",\"shape\":[1,%d],\"data_offsets\":[0,%d]}}", ROW, ROW);
    char *doc = document(head, values, ROW, &len);
    struct call_pieces b = call_pieces(1, "{\"method\":\"add\",\"pad\":true}", doc, len);
    b.dispatch = RECORD_DP_COMPUTE_PROTO;
    while (b.at < b.len) {
        sends(w, &b, MIB / 4);
        for (int i = 0; i < WORLD; i++)
            wire_pass(&w->workers[i].wire);
        router_turn(&w->f.router);
        assert_true(w->c.session->peer.read);
    }
    for (int i = 0; i < WORLD; i++) {
        struct wire_record *r = wire_next(&w->workers[i].wire);
        assert_true(r && r->h.type == RECORD_CALL && r->len > ROW);
        assert_memory_equal(r->body + r->len - ROW, values, ROW);
        free(r);
    }
    assert_in_range(quota_used(w->c.session->quota), 0, 4096);
    assert_int_equal(w->c.session->parked, 0);
    free(doc);
    free(values);
}

#define X8 "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

static void split_batch(struct world *w, struct call_pieces *b, const char *values, size_t n)
{
    size_t len;
    char *doc = document(X8, values, n, &len);
    *b = call_pieces(1, ADD, doc, len);
    b->dispatch = RECORD_DP_COMPUTE_PROTO;
    free(doc);
    sends(w, b, b->len - n + 1);
}

static void a_batch_that_is_too_short_or_too_long_runs_nowhere(void **state)
{
    struct world *w = *state;
    for (size_t n = 3; n <= 5; n += 2) {
        struct call_pieces b;
        split_batch(w, &b, "abcde", n);
        for (uint32_t i = 0; i < WORLD; i++)
            assert_null(wire_next(&w->workers[i].wire));
        sends_rest(w, &b);
        hears(w, "1 ERROR INVALID add(): safetensors: a document of*");
        for (uint32_t i = 0; i < WORLD; i++)
            takes_cancel(w, i);
        assert_int_equal(w->f.router.n_calls, 0);
    }
}

static void results_whose_tensors_lie_otherwise_are_joined_all_the_same(void **state)
{
    static const char *const heads[WORLD] = {
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"y\":{\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[1,2]}}",
        "{\"y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"x\":{\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[1,2]}}"};
    static const char *const values[WORLD] = {"aA", "Bb"};
    struct world *w = *state;
    struct call_pieces b;
    struct arena a = ARENA_INIT;
    struct batch joined;
    struct err err = ERR_INIT;
    split_batch(w, &b, "abcd", 4);
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r = wire_next(&w->workers[i].wire);
        size_t len;
        char *doc = document(heads[i], values[i], 2, &len);
        assert_int_equal(say(w, i, r->h.call, doc, 0, len - 1, false), 0);
        assert_int_equal(say(w, i, r->h.call, doc, len - 1, 1, true), 0);
        free(doc);
        free(r);
    }
    struct wire_record *r = wire_next(&w->c.wire);
    assert_int_equal(r->h.type, RECORD_RESULT);
    assert_int_equal(batch_read(r->body, r->len, &a, &joined, &err), 0);
    assert_memory_equal(r->body + safetensors_find(&joined.doc, "x")->offset, "ab", 2);
    assert_memory_equal(r->body + safetensors_find(&joined.doc, "y")->offset, "AB", 2);
    arena_done(&a);
    free(r);
}

static char *bytes_document(int rows, size_t *ret_len)
{
    char head[128], *values = many(rows), *doc;
    snprintf(head, sizeof head, "{\"x\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", rows, rows);
    doc = document(head, values, rows, ret_len);
    free(values);
    return doc;
}

static void a_rank_whose_turn_it_is_not_is_held(void **state)
{
    enum { ROWS = 3 << 20 };
    struct world *w = *state;
    struct call_pieces b;
    size_t len;
    char *doc = bytes_document(ROWS, &len);
    split_batch(w, &b, "abcd", 4);
    sends_rest(w, &b);
    struct wire_record *calls[WORLD] = {wire_next(&w->workers[0].wire), wire_next(&w->workers[1].wire)};
    assert_int_equal(say(w, 1, calls[1]->h.call, doc, 0, 3 * MIB - 100, false), 0);
    assert_true(told(&w->workers[1].wire, RECORD_HOLD));
    assert_true(w->c.session->peer.read); // the client is read all the while, because this may take long
    assert_int_equal(say(w, 0, calls[0]->h.call, doc, 0, len, false), 0);
    assert_int_equal(say(w, 0, calls[0]->h.call, doc, len, 0, true), 0);
    assert_null(wire_next(&w->c.wire));
    router_turn(&w->f.router);
    assert_null(wire_next(&w->c.wire));
    router_turn(&w->f.router);
    assert_true(told(&w->workers[1].wire, RECORD_GO));
    assert_int_equal(say(w, 1, calls[1]->h.call, doc, 3 * MIB - 100, len - (3 * MIB - 100), true), 0);
    struct wire_record *r = wire_next(&w->c.wire);
    assert_true(r && r->h.type == RECORD_RESULT && r->len > (size_t)2 * ROWS);
    free(r);
    for (int i = 0; i < WORLD; i++)
        free(calls[i]);
    free(doc);
}

// Results in shared memory arrive like this.
static void long_results_that_come_at_once_are_joined_little_by_little(void **state)
{
    enum { ROWS = 5 << 20 };
    struct world *w = *state;
    struct call_pieces b;
    size_t len;
    char *doc = bytes_document(ROWS, &len);
    split_batch(w, &b, "abcd", 4);
    sends_rest(w, &b);
    struct wire_record *calls[WORLD] = {wire_next(&w->workers[0].wire), wire_next(&w->workers[1].wire)};
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(say(w, i, calls[i]->h.call, doc, 0, len, true), 0);
    struct wire_record *r = NULL;
    for (int i = 0; i < 20 && !r; i++) {
        r = wire_next(&w->c.wire);
        router_turn(&w->f.router);
    }
    assert_true(r && r->h.type == RECORD_RESULT && r->len > (size_t)2 * ROWS);
    free(r);
    for (int i = 0; i < WORLD; i++)
        free(calls[i]);
    free(doc);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(ranks_get_it_while_it_comes_and_run_it_when_it_is_whole),
        T(an_id_is_in_use_before_its_call_is_whole),
        T(a_piece_is_held_once_for_all_ranks),
        T(what_the_queues_of_the_ranks_keep_for_short_pieces_is_charged),
        T(the_slowest_rank_has_the_sender_told_to_hold_it),
        T(several_that_are_held_do_not_hold_up_each_other),
        T(a_cancel_in_the_middle_leaves_nothing_behind),
        T(a_caller_that_goes_leaves_nothing_behind),
        T(a_rank_that_dies_ends_it_for_the_others),
        T(a_deadline_in_the_middle_says_so),
        T(an_answer_before_the_end_of_the_arguments_is_refused),
        T(a_refused_call_is_refused_at_once_and_its_rest_passed_over),
        T(those_behind_it_keep_the_order_and_those_of_others_need_not),
        T(a_result_of_one_rank_passes_through),
        T(a_slow_caller_has_the_rank_told_to_hold_it),
        T(a_rank_that_was_held_is_told_so_even_when_nobody_waits_for_it_any_more),
        T(arguments_for_a_rank_that_has_just_left_find_no_room),
        T(arguments_for_a_rank_that_has_left_without_any_of_them_go_to_the_others_only),
        T(a_death_ends_a_result_that_has_begun),
        T(a_cancel_ends_a_result_that_has_begun),
        T(a_batch_that_is_too_short_or_too_long_runs_nowhere),
        T(a_row_that_padding_repeats_may_be_longer_than_what_may_wait),
        T(results_whose_tensors_lie_otherwise_are_joined_all_the_same),
        T(a_rank_whose_turn_it_is_not_is_held),
        T(long_results_that_come_at_once_are_joined_little_by_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
