// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_stream.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/area.h"
#include "common/wire/record_reader.h"
#include "common/wire/record_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct record_writer w;
static struct buf trace;
#define MESSAGE ((size_t)64 << 10)

static char message[MESSAGE];

static int setup(void **state)
{
    (void)state;
    record_writer_init(&w, 64 * MIB);
    trace = BUF_INIT(MIB);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    record_writer_done(&w);
    assert_int_equal(w.queue.bytes, 0);
    assert_int_equal(w.queue.n_items, 0);
    buf_done(&trace);
    return 0;
}

static void copy(uint8_t type, uint32_t call, uint32_t rank, const char *body)
{
    struct err err = ERR_INIT;
    assert_int_equal(record_writer_copy(&w, &(struct record_header){.type = type, .call = call, .rank = rank}, body,
                                        strlen(body), &err),
                     0);
}

static void push(uint8_t type, uint32_t call, uint32_t rank, size_t len)
{
    struct err err = ERR_INIT;
    struct blob *b = blob_new(len, NULL);
    memset(b->data, 'a' + (int)(call % 26), len);
    assert_int_equal(record_writer_push(&w, &(struct record_header){.type = type, .call = call, .rank = rank},
                                        &(struct record_part){b, 0, len}, 1, &err),
                     0);
    blob_unref(b);
}

// Fills one message and notes its records as "call/rank:bytes", with + where more is to come.
static size_t fill(size_t size)
{
    struct err err = ERR_INIT;
    size_t n = record_writer_fill(&w, message, size);
    assert_true(n <= size);
    for (size_t at = 0; at < n;) {
        struct record_header h;
        assert_int_equal(record_header_decode(message + at, &h, &err), 0);
        at += RECORD_HEADER_SIZE + h.len;
        assert_true(at <= n); // a message holds whole records
        buf_printf(&trace, "%u/%d:%u%s ", h.call, (int)h.rank, h.len, (h.flags & RECORD_MORE) ? "+" : "");
    }
    buf_puts(&trace, "| ");
    return n;
}

static void what_is_queued_goes_out_in_one_message(void **state)
{
    (void)state;
    assert_int_equal(fill(MESSAGE), 0);
    for (uint32_t i = 1; i <= 3; i++)
        copy(RECORD_CALL, i, 0, "body");
    assert_int_equal(fill(MESSAGE), 3 * (RECORD_HEADER_SIZE + 4));
    assert_int_equal(fill(MESSAGE), 0);
    assert_string_equal(buf_str(&trace), "| 1/0:4 2/0:4 3/0:4 | | ");
    assert_int_equal(w.queue.bytes, 0);
}

static void header_and_body_arrive_as_given(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct blob *b = blob_copy("0123456789", 10, NULL);
    const struct record_header h = {.len = 999, // is computed
                                    .call = 5,
                                    .rank = RECORD_GROUP,
                                    .type = RECORD_CALL,
                                    .flags = RECORD_PARTS,
                                    .dispatch = RECORD_ONE_TO_ALL,
                                    .execute = RECORD_ALL};
    const struct record_part parts[] = {{b, 0, 3}, {b, 0, 0}, {b, 7, 3}};
    assert_int_equal(record_writer_push(&w, &h, parts, 3, &err), 0);
    blob_unref(b); // the queue has references of its own
    size_t n = record_writer_fill(&w, message, MESSAGE);
    static const char want[] = "\6\0\0\0\5\0\0\0\xff\xff\xff\xff\4\2\1\1"
                               "012789";
    assert_int_equal(n, sizeof want - 1);
    assert_memory_equal(message, want, n);
}

static void a_broadcast_holds_one_copy(void **state)
{
    (void)state;
    struct record_writer many[40];
    struct err err = ERR_INIT;
    struct quota *q = quota_new(MIB, NULL);
    struct blob *b = blob_copy("shared", 6, q);
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        record_writer_init(&many[i], MIB);
        assert_int_equal(record_writer_push(&many[i], &(struct record_header){.type = RECORD_CALL, .call = 1},
                                            &(struct record_part){b, 0, 6}, 1, &err),
                         0);
    }
    blob_unref(b);
    assert_int_equal(quota_used(q), 6);
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        assert_int_equal(record_writer_fill(&many[i], message, MESSAGE), RECORD_HEADER_SIZE + 6);
        record_writer_done(&many[i]);
    }
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
}

static void small_records_slip_in_between_the_pieces_of_a_long_body(void **state)
{
    (void)state;
    push(RECORD_CALL, 1, 0, 100000);
    copy(RECORD_CALL, 2, 0, "two");
    fill(MESSAGE);
    copy(RECORD_CALL, 3, 0, "three");
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "1/0:65520+ | 2/0:3 1/0:34480 3/0:5 | ");
}

static void long_bodies_take_turns(void **state)
{
    (void)state;
    push(RECORD_CALL, 1, 0, 100000);
    push(RECORD_CALL, 2, 0, 100000);
    while (fill(MESSAGE))
        ;
    assert_string_equal(buf_str(&trace), "1/0:65520+ | 2/0:65520+ | 1/0:34480 2/0:31024+ | 2/0:3456 | | ");
}

static void a_record_never_exceeds_its_maximum(void **state)
{
    (void)state;
    static char big[3 * 1024 * 1024];
    struct record_header h;
    struct err err = ERR_INIT;
    push(RECORD_CALL, 1, 0, 2 * MIB);
    size_t n = record_writer_fill(&w, big, sizeof big);
    assert_int_equal(n, 2 * (RECORD_HEADER_SIZE + RECORD_BODY_MAX));
    assert_int_equal(record_header_decode(big, &h, &err), 0);
    assert_int_equal(h.len, RECORD_BODY_MAX);
    assert_int_equal(h.flags, RECORD_MORE);
}

static void what_is_queued_of_a_call_waits_for_its_unfinished_body(void **state)
{
    (void)state;
    copy(RECORD_CALL, 1, -1u, "head");
    push(RECORD_ARGS, 1, 0, 100000); // long, cut
    push(RECORD_ARGS, 1, 1, 100000); // queued before that began
    copy(RECORD_CALL, 2, -1u, "other");
    fill(MESSAGE);
    copy(RECORD_ARGS, 1, 2, "after");    // and after
    copy(RECORD_RESULT, 1, 0, "answer"); // the other direction has nothing to do with it
    while (fill(MESSAGE))
        ;
    assert_string_equal(buf_str(&trace), "1/-1:4 1/0:65500+ | 2/-1:5 1/0:34500 1/1:30983+ | "
                                         "1/0:6 1/1:65498+ | 1/1:3519 1/2:5 | | ");
}

static void bodies_that_almost_fit_are_not_cut_into_crumbs(void **state)
{
    (void)state;
    push(RECORD_CALL, 1, 0, MESSAGE - 1000);
    push(RECORD_CALL, 2, 0, 1500);
    while (fill(MESSAGE))
        ;
    assert_string_equal(buf_str(&trace), "1/0:64536 | 2/0:1500 | | ");
}

static void a_dropped_call_leaves_the_queue(void **state)
{
    (void)state;
    copy(RECORD_CALL, 1, 0, "one");
    copy(RECORD_CALL, 2, 0, "two");
    assert_false(record_writer_drop(&w, 1, false)); // nothing of it is out
    assert_false(record_writer_drop(&w, 2, true));  // its answers: there are none
    fill(MESSAGE);
    push(RECORD_CALL, 3, 0, 100000);
    push(RECORD_ARGS, 3, 1, 100000);
    fill(MESSAGE);
    assert_true(record_writer_drop(&w, 3, false)); // the peer has half of it
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "2/0:3 | 3/0:65520+ | | ");
    assert_int_equal(w.queue.bytes, 0);
}

static bool is_unsent(uint32_t call)
{
    struct blob *body = record_writer_body(&w, call);
    blob_unref(body);
    return body;
}

static void what_is_out_of_a_call_is_known(void **state)
{
    (void)state;
    copy(RECORD_CALL, 1, 0, "x");
    push(RECORD_CALL, 2, 0, 3 * MIB);
    assert_true(is_unsent(1) && is_unsent(2));
    assert_false(is_unsent(3));
    fill(MESSAGE); // all of one, some of the other
    assert_false(is_unsent(1) || is_unsent(2));
    copy(RECORD_CANCEL, 1, 0, ""); // that this waits means nothing
    assert_false(is_unsent(1));
}

static void what_must_get_through_does(void **state)
{
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_CANCEL, .call = 1};
    (void)state;
    w.queue.max_bytes = 0;
    assert_int_equal(record_writer_copy(&w, &h, NULL, 0, &err), ERR_LIMIT);
    record_writer_insist(&w, &h);
    assert_int_equal(record_writer_copy(&w, &h, NULL, 0, &err), ERR_LIMIT); // no hole for others
    assert_int_equal(record_queue_room(&w.queue), 0);
    fill(1024);
    assert_string_equal(buf_str(&trace), "1/0:0 | ");
}

static void the_queue_is_bounded(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct record_writer small;
    record_writer_init(&small, 2000);
    struct blob *b = blob_new(4000, NULL);
    const struct record_header h = {.type = RECORD_CALL, .call = 1};
    assert_int_equal(record_writer_push(&small, &h, &(struct record_part){b, 0, 4000}, 1, &err), ERR_LIMIT);
    assert_int_equal(b->refs, 1);
    int queued = 0;
    while (record_writer_copy(&small, &h, "", 0, &err) == 0) // empty bodies cost memory too
        queued++;
    assert_in_range(queued, 2, 40);
    record_writer_fill(&small, message, MESSAGE);
    assert_int_equal(record_writer_copy(&small, &h, "", 0, &err), 0);
    record_writer_done(&small);
    blob_unref(b);
}

static void area_ends(struct area *a)
{
    a->size = 0;
}

// It takes no memory of this process, however it goes out.
static void what_lies_in_shared_memory_does_not_count(void **state)
{
    (void)state;
    static char memory[8000];
    struct area a = {.fd = -1, .base = memory, .size = sizeof memory, .end = area_ends};
    const struct record_header h = {.type = RECORD_CALL, .call = 1};
    struct record_stream s;
    struct err err = ERR_INIT;
    area_init(&a);
    struct record_part part = {blob_in_area(&a, memory, sizeof memory, 0), 0, sizeof memory};
    w.queue.max_bytes = 2000;
    assert_int_equal(record_writer_push(&w, &h, &part, 1, &err), 0);
    assert_int_equal(
        record_stream_begin(&s, &w.queue, &(struct record_header){.type = RECORD_CALL, .call = 2}, &part, 1, &err), 0);
    assert_int_equal(record_stream_add(&s, &part, 1, &err), 0);
    assert_int_equal(record_stream_waits(&s), 2 * sizeof memory);
    blob_unref(part.blob);
    fill(1024);
    fill(1024);
    assert_in_range(w.queue.bytes, 1, 1500);
    record_stream_end(&s);
    fill(MESSAGE);
    assert_int_equal(record_stream_waits(&s), 0);
    assert_int_equal(w.queue.bytes, 0);
    area_unref(&a);
    assert_int_equal(a.size, 0);
}

// All queued bodies arrive whole, and the bodies of one call in order, through messages of random size.
// Like record_writer_fill(), by way of a gather that is sent bit by bit.
static size_t gather_into(char *to, size_t size, struct rand *rand)
{
    struct gather g;
    size_t got = 0;
    _cleanup_(free_p) char *out = xmalloc(size);
    gather_init(&g);
    size_t len = record_writer_gather(&w, out, size, &g);
    assert_int_equal(g.len, len);
    while (g.len) {
        const struct iovec *v = &g.iov[g.at];
        size_t n = 1 + (size_t)rand_below(rand, (uint32_t)v->iov_len);
        memcpy(to + got, v->iov_base, n);
        got += n;
        gather_sent(&g, n);
    }
    assert_int_equal(got, len);
    gather_done(&g);
    return len;
}

static void what_is_long_is_gathered_from_where_it_lies(void **state)
{
    (void)state;
    struct gather g;
    struct blob *body = blob_new(3 * GATHER_MIN, NULL);
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_RESULT, .call = 1, .rank = 1};
    memset(body->data, 'x', body->len);
    const struct record_part parts[] = {{body, 0, 10}, {body, 10, GATHER_MIN}, {body, 0, 10}};
    assert_int_equal(record_writer_push(&w, &h, parts, 3, &err), 0);
    gather_init(&g);
    size_t len = record_writer_gather(&w, message, MESSAGE, &g);
    assert_int_equal(len, RECORD_HEADER_SIZE + GATHER_MIN + 20);
    assert_int_equal(g.len, len);
    assert_int_equal(g.n, 3);
    assert_ptr_equal(g.iov[0].iov_base, message);
    assert_int_equal(g.iov[0].iov_len, RECORD_HEADER_SIZE + 10);
    assert_ptr_equal(g.iov[1].iov_base, body->data + 10);
    assert_int_equal(g.iov[1].iov_len, GATHER_MIN);
    assert_ptr_equal(g.iov[2].iov_base, message + RECORD_HEADER_SIZE + 10);
    assert_int_equal(body->refs, 2); // of what is not sent
    gather_sent(&g, RECORD_HEADER_SIZE + 10 + GATHER_MIN);
    assert_int_equal(body->refs, 1);
    gather_done(&g);
    blob_unref(body);
}

static void everything_arrives_whole_and_in_order(void **state)
{
    (void)state;
    struct rand rand;
    struct err err = ERR_INIT;
    rand_seed(&rand, 99);
    struct record_reader r;
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    enum { CALLS = 5, BODIES = 400 };
    size_t lens[BODIES];
    uint32_t queued = 0, seen = 0, last_of_call[CALLS + 1] = {0};
    while (seen < BODIES) {
        if (queued < BODIES && rand_below(&rand, 2)) { // the rank carries the number of the body
            lens[queued] = (size_t)rand_below(&rand, rand_below(&rand, 4) ? 200 : 60000);
            push(RECORD_ARGS, 1 + (uint32_t)rand_below(&rand, CALLS), queued, lens[queued]);
            queued++;
            continue;
        }
        size_t size = (size_t)rand_range(&rand, 4096, 20000);
        size_t len = rand_below(&rand, 2) ? record_writer_fill(&w, message, size) : gather_into(message, size, &rand);
        const char *data = message;
        struct record rec;
        while (record_reader_next(&r, &data, &len, &rec, &err) == 1) {
            assert_int_equal(rec.len, lens[rec.h.rank]);
            for (size_t i = 0; i < rec.len; i++)
                assert_int_equal(rec.body[i], 'a' + (int)rec.h.call);
            assert_true(rec.h.rank + 1 > last_of_call[rec.h.call]);
            last_of_call[rec.h.call] = rec.h.rank + 1;
            seen++;
        }
        assert_true(record_reader_at_boundary(&r));
        assert_int_equal(err.code, 0);
    }
    record_reader_done(&r);
}

// Streams: bodies that are queued as they come

static struct record_stream stream;

static void begin(uint8_t type, uint32_t call, size_t len)
{
    struct err err = ERR_INIT;
    struct blob *b = blob_new(len, NULL);
    memset(b->data, 's', len);
    assert_int_equal(record_stream_begin(&stream, &w.queue, &(struct record_header){.type = type, .call = call},
                                         &(struct record_part){b, 0, len}, 1, &err),
                     0);
    blob_unref(b);
}

static int add(size_t len)
{
    struct err err = ERR_INIT;
    struct blob *b = blob_new(len, NULL);
    memset(b->data, 't', len);
    int r = record_stream_add(&stream, &(struct record_part){b, 0, len}, 1, &err);
    assert_int_equal(b->refs, r == 0 && stream.item ? 2 : 1);
    blob_unref(b);
    return r;
}

static void a_stream_goes_out_as_it_comes(void **state)
{
    (void)state;
    begin(RECORD_CALL, 1, 10);
    fill(MESSAGE);
    assert_int_equal(fill(MESSAGE), 0); // more is to come, and it is not here
    copy(RECORD_CALL, 2, 0, "small");
    fill(MESSAGE);
    add(20);
    add(30);
    assert_int_equal(record_stream_waits(&stream), 50);
    fill(MESSAGE);
    assert_int_equal(record_stream_waits(&stream), 0);
    add(5);
    record_stream_end(&stream);
    fill(MESSAGE);
    assert_null(stream.item);
    assert_int_equal(add(7), 0); // of no use to anybody any more
    assert_string_equal(buf_str(&trace), "1/0:10+ | | 2/0:5 | 1/0:50+ | 1/0:5 | ");
}

static void a_stream_may_end_with_an_empty_record(void **state)
{
    (void)state;
    begin(RECORD_CALL, 1, 10);
    fill(MESSAGE);
    record_stream_end(&stream);
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "1/0:10+ | 1/0:0 | ");
}

static void what_follows_a_stream_of_its_call_waits_for_its_end(void **state)
{
    (void)state;
    begin(RECORD_CALL, 1, 10);
    fill(MESSAGE);
    copy(RECORD_CANCEL, 1, 0, "{}");
    copy(RECORD_CALL, 2, 0, "");
    fill(MESSAGE);
    add(1);
    record_stream_end(&stream);
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "1/0:10+ | 2/0:0 | 1/0:1 1/0:2 | ");
}

static void a_stream_that_is_dropped_leaves_its_followers(void **state)
{
    (void)state;
    begin(RECORD_CALL, 1, 10);
    assert_false(record_stream_drop(&stream)); // nothing is out: nobody has to be told
    begin(RECORD_CALL, 1, 10);
    fill(MESSAGE);
    add(10);
    copy(RECORD_CANCEL, 1, 0, "{}");
    assert_true(record_stream_drop(&stream));
    assert_null(stream.item);
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "1/0:10+ | 1/0:2 | ");
    begin(RECORD_CALL, 3, 10);
    record_stream_end(&stream);
    assert_false(record_stream_drop(&stream)); // all of it is there: it goes out
    record_stream_forget(&stream);
    fill(MESSAGE);
    assert_string_equal(buf_str(&trace), "1/0:10+ | 1/0:2 | 3/0:10 | ");
}

static void a_writer_that_is_done_is_forgotten_by_its_streams(void **state)
{
    (void)state;
    begin(RECORD_CALL, 1, 10);
    fill(MESSAGE);
    record_writer_done(&w);
    assert_null(stream.item);
    record_writer_init(&w, 64 * MIB);
}

static void what_the_peer_holds_lets_others_by(void **state)
{
    (void)state;
    push(RECORD_CALL, 1, 0, 3 * MESSAGE);
    assert_false(record_writer_hold(&w, 1, false, true)); // it has not begun: that would change the order of calls
    fill(MESSAGE);
    assert_false(record_writer_hold(&w, 1, true, true)); // the other direction
    assert_true(record_writer_hold(&w, 1, false, true));
    assert_true(record_writer_hold(&w, 1, false, true)); // again
    push(RECORD_CALL, 2, 0, 5);
    fill(MESSAGE);
    assert_int_equal(fill(MESSAGE), 0);
    assert_true(record_writer_hold(&w, 1, false, false));
    while (fill(MESSAGE))
        ;
    assert_false(record_writer_hold(&w, 1, false, false)); // all of it is out
    assert_string_equal(buf_str(&trace), "1/0:65520+ | 2/0:5 | | 1/0:65520+ | 1/0:65520+ | 1/0:48 | | ");
}

static void a_stream_that_is_held_is_freed(void **state)
{
    (void)state;
    begin(RECORD_RESULT, 1, 10);
    fill(MESSAGE);
    add(10);
    assert_true(record_writer_hold(&w, 1, true, true));
    add(10);
    assert_int_equal(fill(MESSAGE), 0);
    assert_true(record_writer_drop(&w, 1, true));
    assert_null(stream.item);
    begin(RECORD_RESULT, 2, 10);
    fill(MESSAGE);
    assert_true(record_writer_hold(&w, 2, true, true));
}

static void a_full_queue_takes_no_more_of_a_stream(void **state)
{
    (void)state;
    record_writer_done(&w);
    record_writer_init(&w, 4096);
    begin(RECORD_CALL, 1, 1000);
    assert_int_equal(add(4000), ERR_LIMIT);
    assert_int_equal(record_stream_waits(&stream), 1000);
    fill(MESSAGE);
    assert_int_equal(add(3000), 0); // parts that are out do not count
}

// A quota pays for the bytes that the writer takes, until they are out. Bytes above the quota are counted, and go out,
// too.
static void what_waits_is_paid_for(void **state)
{
    (void)state;
    struct quota *payer = quota_new(2000, NULL);
    record_writer_charge(&w, payer);
    copy(RECORD_ERROR, 1, 0, "too much");
    size_t each = quota_used(payer);
    assert_true(each > sizeof "too much" && w.queue.uncharged == 0);
    for (uint32_t i = 2; quota_left(payer) >= each; i++)
        copy(RECORD_ERROR, i, 0, "too much");
    size_t most = quota_used(payer);
    copy(RECORD_ERROR, 100, 0, "too much");
    assert_int_equal(quota_used(payer), most);
    assert_int_equal(w.queue.uncharged, each);
    while (record_writer_fill(&w, message, sizeof message))
        ;
    assert_int_equal(quota_used(payer), 0);
    assert_int_equal(w.queue.uncharged, 0);
    quota_unref(payer);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_queued_goes_out_in_one_message),
        T(header_and_body_arrive_as_given),
        T(a_broadcast_holds_one_copy),
        T(small_records_slip_in_between_the_pieces_of_a_long_body),
        T(long_bodies_take_turns),
        T(a_record_never_exceeds_its_maximum),
        T(what_is_queued_of_a_call_waits_for_its_unfinished_body),
        T(bodies_that_almost_fit_are_not_cut_into_crumbs),
        T(a_dropped_call_leaves_the_queue),
        T(what_is_out_of_a_call_is_known),
        T(what_must_get_through_does),
        T(the_queue_is_bounded),
        T(what_lies_in_shared_memory_does_not_count),
        T(what_is_long_is_gathered_from_where_it_lies),
        T(everything_arrives_whole_and_in_order),
        T(a_stream_goes_out_as_it_comes),
        T(a_stream_may_end_with_an_empty_record),
        T(what_follows_a_stream_of_its_call_waits_for_its_end),
        T(a_stream_that_is_dropped_leaves_its_followers),
        T(a_writer_that_is_done_is_forgotten_by_its_streams),
        T(what_the_peer_holds_lets_others_by),
        T(a_stream_that_is_held_is_freed),
        T(a_full_queue_takes_no_more_of_a_stream),
        T(what_waits_is_paid_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
