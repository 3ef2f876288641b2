// SPDX-License-Identifier: Apache-2.0
// Calls that have to wait, with arguments in shared memory. They arrive at once, even after a HOLD, and wait where they
// are. The proxy has room for 4 MiB, and each body is longer.
#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/wire/area.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum { MOST = 4 * MIB, LONG = 6 * MIB };

// The arguments of call 1, all in memory of the client, and what the client has lent of it.
struct pool {
    struct area area;
    char *bytes;
    size_t len, at;
    uint8_t dispatch;
    unsigned lent, returned;
};

static void give(struct area *a, const char *data, uint32_t tag)
{
    struct pool *p = CONTAINER_OF(a, struct pool, area);
    assert_in_range(data, p->bytes, p->bytes + p->len);
    assert_int_equal(tag, 5);
    p->returned++;
}

static void end(struct area *a)
{
    free(CONTAINER_OF(a, struct pool, area)->bytes);
}

static struct pool *pool_of(uint8_t dispatch, size_t len)
{
    struct pool *p = xcalloc(1, sizeof *p);
    *p = (struct pool){.bytes = xmalloc(len), .len = len, .dispatch = dispatch};
    memset(p->bytes, ' ', len);
    p->area = (struct area){.fd = -1, .base = p->bytes, .size = len, .give = give, .end = end};
    area_init(&p->area);
    return p;
}

// Nobody has a reference to the memory.
static void pool_free(struct pool *p)
{
    assert_int_equal(p->returned, p->lent);
    area_unref(&p->area);
    free(p);
}

// A list with one string, for all ranks.
static struct pool *text(size_t len)
{
    struct pool *p = pool_of(RECORD_ONE_TO_ALL, len);
    memset(p->bytes, 'x', len);
    memcpy(p->bytes, "[\"", 2);
    memcpy(p->bytes + len - 2, "\"]", 2);
    return p;
}

// A list with one string for each rank.
static struct pool *list(size_t len)
{
    struct pool *p = pool_of(RECORD_ALL_TO_ALL, len);
    memcpy(p->bytes, "[[\"a\"],[\"b\"],[\"c\"],[\"d\"", 23);
    memcpy(p->bytes + len - 2, "]]", 2);
    return p;
}

// A batch with one row for each rank: of a, b, c and d.
static struct pool *batch(size_t row)
{
    char head[128];
    int n = snprintf(head, sizeof head, "{\"x\":{\"dtype\":\"U8\",\"shape\":[%d,%zu],\"data_offsets\":[0,%zu]}}", WORLD,
                     row, WORLD * row);
    struct pool *p = pool_of(RECORD_DP_COMPUTE_PROTO, 8 + (size_t)n + WORLD * row);
    le_put_u64(p->bytes, (uint64_t)n);
    memcpy(p->bytes + 8, head, (size_t)n);
    for (size_t i = 0; i < WORLD; i++)
        memset(p->bytes + 8 + n + i * row, 'a' + (int)i, row);
    return p;
}

static int setup(void **state)
{
    world_setup_empty(state);
    struct router_config *config = &((struct world *)*state)->f.router.config;
    config->max_whole = MOST;
    config->whole_json = MIB;
    return 0;
}

static void sends_record(struct world *w, const struct record *rec)
{
    struct err err = ERR_INIT;
    assert_int_equal(session_record(w->c.session, rec, UINT64_MAX, &err), 0);
}

// Sends the head of the call as bytes.
static void begins(struct world *w, struct pool *p, const char *head)
{
    char body[256];
    size_t len = 4 + strlen(head);
    record_call_prefix(body, (uint32_t)strlen(head));
    memcpy(body + 4, head, len - 4);
    const struct record_header h = {
        .type = RECORD_CALL, .call = 1, .rank = RECORD_GROUP, .dispatch = p->dispatch, .flags = RECORD_MORE};
    sends_record(w, &(struct record){.h = h, .body = body, .len = len, .seq = 1});
}

// Sends so many bytes of the arguments, by reference or as bytes.
static void sends_bytes(struct world *w, struct pool *p, size_t n, bool lent)
{
    bool last = p->at + n == p->len;
    const struct record_header h = {
        .type = RECORD_CALL, .call = 1, .rank = RECORD_GROUP, .dispatch = p->dispatch, .flags = last ? 0 : RECORD_MORE};
    struct record rec = {.h = h, .body = p->bytes + p->at, .len = n, .offset = 100 + p->at, .seq = 1};
    if (lent)
        rec.blob = blob_in_area(&p->area, rec.body, n, 5);
    p->lent += lent;
    p->at += n;
    sends_record(w, &rec);
    blob_unref(rec.blob);
}

static void lends(struct world *w, struct pool *p, size_t n)
{
    sends_bytes(w, p, n, true);
}

static void told(struct world *w, enum record_type type)
{
    struct wire_record *r = wire_next(&w->c.wire);
    assert_non_null(r);
    assert_int_equal(r->h.type, type);
    free(r);
}

static void start(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
}

// Ranks read what has arrived for them, which is not a whole call yet.
static void all_read(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++)
        assert_null(wire_next(&w->workers[i].wire));
    router_turn(&w->f.router);
}

// A rank gets the whole call. Returns its arguments. The caller frees *ret.
static const char *takes(struct world *w, uint32_t rank, size_t *ret_len, struct wire_record **ret)
{
    struct record_call parts;
    struct err err = ERR_INIT;
    fixture_turns(&w->f);
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_CALL);
    assert_int_equal(record_call_decode(r->body, r->len, &parts, &err), 0);
    assert_int_equal(worker_answer(&w->f, &w->workers[rank], r->h.call, RECORD_RESULT, "7", &err), 0);
    *ret = r;
    *ret_len = parts.args_len;
    return parts.args;
}

static void all_take_it(struct world *w, const struct pool *p)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r;
        size_t len;
        const char *args = takes(w, i, &len, &r);
        assert_int_equal(len, p->len);
        assert_memory_equal(args, p->bytes, len);
        free(r);
    }
    hears(w, "1 RESULT [7,7,7,7]");
}

static void held_here(const struct world *w, size_t most)
{
    assert_in_range(quota_used(w->c.session->quota), 1, most);
}

static void what_lies_in_shared_memory_waits_there_however_long_it_is(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, LONG);
    hears_nothing(w);
    held_here(w, 4096);
    start(w);
    all_take_it(w, p);
    pool_free(p);
}

static void and_so_do_many_pieces_with_bytes_between_them(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    sends_bytes(w, p, 1000, false);
    lends(w, p, 2 * MIB);
    sends_bytes(w, p, 1000, false);
    sends_bytes(w, p, 2000, false);
    lends(w, p, 2 * MIB);
    lends(w, p, MIB);
    held_here(w, 16384);
    start(w);
    all_read(w);
    told(w, RECORD_GO);
    sends_bytes(w, p, p->len - p->at, false);
    all_take_it(w, p);
    pool_free(p);
}

static void bytes_that_go_on_after_a_hold_are_refused_all_the_same(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, MIB);
    sends_bytes(w, p, MOST - 1000, false);
    sends_bytes(w, p, 1000, false);
    hears_about(w, "1 ERROR LIMIT", "the client ignored HOLD: at most 4194304 bytes may wait here");
    pool_free(p);
}

static void references_are_counted_too(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    const char *answer = NULL;
    quota_unref(w->c.session->quota);
    w->c.session->quota = quota_new(64 << 10, w->f.router.bytes);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    for (int i = 0; i < 1000 && !answer; i++) {
        lends(w, p, 1);
        answer = client_hears(&w->c);
    }
    assert_non_null(answer);
    assert_non_null(strstr(answer, "LIMIT"));
    pool_free(p);
}

// The head of a batch is copied and read. The rows are sent from where they are.
static void a_batch_is_cut_where_it_lies(void **state)
{
    struct world *w = *state;
    struct pool *p = batch(LONG / WORLD);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    start(w);
    held_here(w, 16384);
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r;
        size_t len;
        const char *args = takes(w, i, &len, &r);
        assert_in_range(len, LONG / WORLD, LONG / WORLD + 200);
        for (size_t k = len - LONG / WORLD; k < len; k++)
            if (args[k] != (char)('a' + i))
                fail_msg("rank %u, byte %zu: %c", i, k, args[k]);
        free(r);
    }
    pool_free(p);
}

static void what_has_to_be_here_whole_is_copied_as_far_as_there_is_room(void **state)
{
    struct world *w = *state;
    struct pool *p = list(2 * MIB);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    held_here(w, 4096);
    start(w);
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r;
        size_t len;
        const char *args = takes(w, i, &len, &r);
        assert_int_equal(args[2], 'a' + (int)i);
        free(r);
    }
    hears(w, "1 RESULT [7,7,7,7]");
    pool_free(p);
    p = list(LONG);
    worker_hang_up(&w->f, &w->workers[0]);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    worker_start(&w->f, &w->workers[0], 0, 2);
    hears_about(w, "1 ERROR LIMIT", "longer than 4194304 bytes, and the proxy needs all of them at once");
    pool_free(p);
}

// A reference to shared memory does not count as bytes that wait for a rank.
static void one_that_is_longer_than_a_ranks_queue_is_passed_on(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    for (uint32_t i = 1; i < WORLD; i++) {
        worker_start(&w->f, &w->workers[i], i, 1);
        w->workers[i].member->peer.out->queue.max_bytes = MIB;
    }
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    worker_start(&w->f, &w->workers[0], 0, 1);
    all_take_it(w, p);
    pool_free(p);
}

static void a_batch_of_which_only_the_head_of_the_call_was_here_goes_on_with_bytes(void **state)
{
    static const size_t firsts[] = {1, 7, 8, 200, MIB};
    struct world *w = *state;
    for (size_t k = 0; k < ARRAY_LEN(firsts); k++) {
        struct pool *p = batch(LONG / WORLD);
        p->dispatch = RECORD_ONE_TO_ALL;
        begins(w, p, ADD);
        told(w, RECORD_HOLD);
        for (uint32_t i = 0; i < WORLD; i++)
            worker_start(&w->f, &w->workers[i], i, (uint32_t)k + 1);
        told(w, RECORD_GO);
        sends_bytes(w, p, firsts[k], false);
        for (size_t n; (n = MIN(p->len - p->at, 128 << 10)) > 0;) {
            sends_bytes(w, p, n, false);
            if (p->at < p->len)
                all_read(w);
        }
        all_take_it(w, p);
        pool_free(p);
        for (uint32_t i = 0; i < WORLD; i++)
            worker_hang_up(&w->f, &w->workers[i]);
    }
}

static void and_with_bytes_and_then_a_reference(void **state)
{
    struct world *w = *state;
    struct pool *p = batch(LONG / WORLD);
    p->dispatch = RECORD_ONE_TO_ALL;
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    start(w);
    told(w, RECORD_GO);
    sends_bytes(w, p, 3, false);
    lends(w, p, p->len - p->at - 1);
    all_read(w);
    sends_bytes(w, p, 1, false);
    all_take_it(w, p);
    pool_free(p);
}

// References are looked up in the JSON where it is.
static void text_that_may_have_references_in_it_is_looked_through(void **state)
{
    struct world *w = *state;
    struct pool *p = text(512 << 10);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    start(w);
    all_take_it(w, p);
    pool_free(p);
}

static void it_is_returned_when_the_call_ends_without_having_been_sent(void **state)
{
    struct world *w = *state;
    struct pool *p = text(LONG);
    begins(w, p, "{\"method\":\"add\",\"timeoutMs\":50}");
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    fixture_pass(&w->f, 50);
    hears_about(w, "1 ERROR TIMEOUT", "ml/llama is not ready");
    pool_free(p);
    p = text(LONG);
    begins(w, p, ADD);
    told(w, RECORD_HOLD);
    lends(w, p, p->len);
    client_cancel(&w->c, 1);
    hears_about(w, "1 ERROR CANCELED", "before it was sent to a rank");
    pool_free(p);
    assert_int_equal(w->f.router.n_calls, 0);
}

int main(void)
{
#define MEMORY_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(what_lies_in_shared_memory_waits_there_however_long_it_is),
        MEMORY_TEST(and_so_do_many_pieces_with_bytes_between_them),
        MEMORY_TEST(bytes_that_go_on_after_a_hold_are_refused_all_the_same),
        MEMORY_TEST(references_are_counted_too),
        MEMORY_TEST(a_batch_is_cut_where_it_lies),
        MEMORY_TEST(what_has_to_be_here_whole_is_copied_as_far_as_there_is_room),
        MEMORY_TEST(one_that_is_longer_than_a_ranks_queue_is_passed_on),
        MEMORY_TEST(a_batch_of_which_only_the_head_of_the_call_was_here_goes_on_with_bytes),
        MEMORY_TEST(and_with_bytes_and_then_a_reference),
        MEMORY_TEST(text_that_may_have_references_in_it_is_looked_through),
        MEMORY_TEST(it_is_returned_when_the_call_ends_without_having_been_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
