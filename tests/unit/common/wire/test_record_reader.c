// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_reader.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct buf stream; // what the peer sends
static struct buf trace;  // what came of it, a line a record
static size_t enough;     // so many bytes will do
static size_t collect;    // bodies that come in pieces are collected, up to so many bytes; 0 = they are not

static int setup(void **state)
{
    (void)state;
    stream = BUF_INIT(64 << 20);
    trace = BUF_INIT(1 << 20);
    collect = enough = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_done(&stream);
    buf_done(&trace);
    return 0;
}

static void put(uint8_t type, uint32_t call, uint32_t rank, uint8_t flags, const char *body)
{
    char head[RECORD_HEADER_SIZE];
    record_header_encode(head,
                         &(struct record_header){
                             .len = (uint32_t)strlen(body), .call = call, .rank = rank, .type = type, .flags = flags});
    buf_append(&stream, head, sizeof head);
    buf_puts(&stream, body);
}

// Reads the stream in pieces of up to `step` bytes, each a copy of its own so that a stale pointer is seen, or, at
// random, where the reader wants them. Returns the error or 0.
static int read_stream(struct record_reader *r, size_t step, struct rand *rand)
{
    struct err err = ERR_INIT;
    buf_reset(&trace);
    for (size_t at = 0; at < stream.len;) {
        size_t cut = rand ? (size_t)rand_range(rand, 1, (int64_t)step) : step, n = MIN(stream.len - at, cut);
        size_t room;
        char *buffer = rand && rand_below(rand, 2) ? record_reader_buffer(r, &room) : NULL;
        n = buffer ? MIN(n, room) : n;
        _cleanup_(free_p) char *piece = xmalloc(n);
        const char *data = buffer ? buffer : piece;
        size_t len = n;
        memcpy(buffer ? buffer : piece, stream.data + at, n);
        at += n;
        struct record rec;
        int got;
        while ((got = record_reader_next(r, &data, &len, &rec, &err)) > 0) {
            if (rec.blob)
                assert_ptr_equal(rec.body, rec.blob->data);
            bool first = (rec.h.flags & RECORD_MORE) && rec.offset == 0 && !rec.over && (!enough || rec.len < enough);
            if (collect && first && record_reader_collect(r, &rec, collect, enough))
                continue;
            buf_printf(&trace, "%s%s call=%u rank=%d flags=%u at=%zu seq=%llu %.*s\n", rec.over ? "over " : "",
                       record_type_name(rec.h.type), rec.h.call, (int)rec.h.rank, rec.h.flags, rec.offset,
                       (unsigned long long)rec.seq, (int)rec.len, rec.body);
        }
        if (got < 0) {
            assert_int_equal(got, err.code);
            assert_true(err.msg[0]);
            return got;
        }
        assert_int_equal(len, 0);
    }
    return 0;
}

static int read_all(struct record_reader_config config, size_t step)
{
    struct record_reader r;
    record_reader_init(&r, &config);
    int code = read_stream(&r, step, NULL);
    if (code == 0)
        assert_true(record_reader_at_boundary(&r));
    record_reader_done(&r);
    return code;
}

static void put_mixed(void)
{
    put(RECORD_HELLO, 0, RECORD_GROUP, 0, "{}");
    put(RECORD_CALL, 1, RECORD_GROUP, RECORD_MORE, "long ");
    put(RECORD_CALL, 2, 3, 0, "small");
    put(RECORD_CALL, 1, RECORD_GROUP, RECORD_MORE, "body ");
    put(RECORD_RESULT, 1, RECORD_GROUP, 0, ""); // an answer to a call of the same number in the other direction
    put(RECORD_CALL, 1, RECORD_GROUP, RECORD_PARTS, "end");
}

static void records_come_out_the_same_however_the_bytes_are_cut(void **state)
{
    (void)state;
    put_mixed();
    for (size_t step = 1; step <= stream.len; step++) {
        assert_int_equal(read_all((struct record_reader_config){0}, step), 0);
        assert_string_equal(buf_str(&trace), "HELLO call=0 rank=-1 flags=0 at=0 seq=1 {}\n"
                                             "CALL call=1 rank=-1 flags=1 at=0 seq=2 long \n"
                                             "CALL call=2 rank=3 flags=0 at=0 seq=3 small\n"
                                             "CALL call=1 rank=-1 flags=1 at=5 seq=2 body \n"
                                             "RESULT call=1 rank=-1 flags=0 at=0 seq=4 \n"
                                             "CALL call=1 rank=-1 flags=2 at=10 seq=2 end\n");
    }
}

static void whole_bodies_are_put_together(void **state)
{
    (void)state;
    put_mixed();
    for (size_t step = 1; step <= stream.len; step++) {
        assert_int_equal(read_all((struct record_reader_config){.whole = true}, step), 0);
        assert_string_equal(buf_str(&trace), "HELLO call=0 rank=-1 flags=0 at=0 seq=1 {}\n"
                                             "CALL call=2 rank=3 flags=0 at=0 seq=3 small\n"
                                             "RESULT call=1 rank=-1 flags=0 at=0 seq=4 \n"
                                             "CALL call=1 rank=-1 flags=2 at=0 seq=2 long body end\n");
    }
}

static void a_whole_record_is_not_copied(void **state)
{
    (void)state;
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    put(RECORD_CALL, 1, 0, 0, "body");
    const char *data = stream.data;
    size_t len = stream.len;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_ptr_equal(rec.body, stream.data + RECORD_HEADER_SIZE);
    assert_null(rec.blob);
    record_reader_done(&r);
}

static void a_body_may_be_put_where_it_belongs(void **state)
{
    (void)state;
    struct quota *quota = quota_new(8, NULL);
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    size_t room, len = RECORD_HEADER_SIZE;
    record_reader_init(&r, &(struct record_reader_config){.quota = quota});
    assert_null(record_reader_buffer(&r, &room)); // before a header
    put(RECORD_RESULT, 1, 1, 0, "12345678");
    const char *data = stream.data;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 0);
    char *buffer = record_reader_buffer(&r, &room);
    assert_non_null(buffer);
    assert_int_equal(room, 8);
    memcpy(buffer, "123", 3);
    data = buffer;
    len = 3;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 0);
    assert_ptr_equal(record_reader_buffer(&r, &room), buffer + 3);
    assert_int_equal(room, 5);
    memcpy(buffer + 3, "45678", 5);
    data = buffer + 3;
    len = 5;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_ptr_equal(rec.body, buffer);
    assert_memory_equal(rec.body, "12345678", 8);
    assert_null(record_reader_buffer(&r, &room));
    record_reader_done(&r);
    quota_unref(quota);
}

static void there_is_no_buffer_for_what_the_quota_does_not_allow(void **state)
{
    (void)state;
    struct quota *quota = quota_new(7, NULL);
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    size_t room, len = RECORD_HEADER_SIZE;
    record_reader_init(&r, &(struct record_reader_config){.whole = true, .quota = quota});
    put(RECORD_RESULT, 1, 1, 0, "12345678");
    const char *data = stream.data;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 0);
    assert_null(record_reader_buffer(&r, &room));
    record_reader_done(&r);
    quota_unref(quota);
}

static void a_body_can_be_kept(void **state)
{
    (void)state;
    struct quota *q = quota_new(100, NULL);
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    record_reader_init(&r, &(struct record_reader_config){.whole = true, .quota = q});
    put(RECORD_CALL, 1, 0, RECORD_MORE, "one ");
    put(RECORD_CALL, 1, 0, 0, "two");
    const char *data = stream.data;
    size_t len = stream.len;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    struct blob *kept = blob_ref(rec.blob);
    record_reader_done(&r);
    assert_int_equal(kept->len, 7);
    assert_memory_equal(kept->data, "one two", 7);
    assert_int_equal(quota_used(q), 7);
    blob_unref(kept);
    quota_unref(q);
}

static void the_order_in_which_calls_began_can_be_kept(void **state)
{
    (void)state;
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    assert_true(record_reader_unfinished(&r) == UINT64_MAX);
    put(RECORD_CALL, 1, 0, RECORD_MORE, "long ");
    put(RECORD_CALL, 2, 0, 0, "small");
    put(RECORD_CALL, 1, 0, 0, "end");
    const char *data = stream.data;
    size_t len = stream.len;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_int_equal(rec.h.call, 2);
    assert_true(rec.seq > record_reader_unfinished(&r)); // call 1 was first
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_int_equal(rec.h.call, 1);
    assert_true(rec.seq < record_reader_unfinished(&r));
    record_reader_done(&r);
}

static void a_cancel_ends_an_unfinished_call_and_an_error_a_result(void **state)
{
    (void)state;
    put(RECORD_CALL, 1, 0, RECORD_MORE, "a");
    put(RECORD_CANCEL, 1, RECORD_GROUP, 0, "{}");
    put(RECORD_CALL, 1, 0, 0, "again");
    put(RECORD_RESULT, 2, 5, RECORD_MORE, "half");
    put(RECORD_RESULT, 2, 6, RECORD_MORE, "six ");
    put(RECORD_ERROR, 2, 5, RECORD_PARTS, "{}");
    put(RECORD_RESULT, 2, 6, 0, "whole");
    assert_int_equal(read_all((struct record_reader_config){.whole = true}, 7), 0);
    assert_string_equal(buf_str(&trace), "CANCEL call=1 rank=-1 flags=0 at=0 seq=2 {}\n"
                                         "CALL call=1 rank=0 flags=0 at=0 seq=3 again\n"
                                         "ERROR call=2 rank=5 flags=2 at=0 seq=6 {}\n"
                                         "RESULT call=2 rank=6 flags=0 at=0 seq=5 six whole\n");
}

static void pieces_that_are_collected_are_counted(void **state)
{
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    (void)state;
    for (int i = 0; i < 5; i++)
        put(RECORD_CALL, 1, 0, RECORD_MORE, "a");
    put(RECORD_CALL, 1, 0, 0, "b");
    const char *data = stream.data;
    size_t len = stream.len;
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_int_equal(rec.len, 6);
    assert_int_equal(record_reader_count(&r), 6);
    assert_int_equal(record_reader_count(&r), 0);
    record_reader_done(&r);
}

// With 500 others open, and in any order.
static void each_of_many_bodies_goes_on(void **state)
{
    enum { BODIES = 500 };
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    (void)state;
    for (uint32_t i = 0; i < BODIES; i++)
        put(RECORD_CALL, 1 + i, 0, RECORD_MORE, "a");
    for (uint32_t i = 0; i < BODIES; i++)
        put(RECORD_CALL, 1 + i * 7 % BODIES, 0, RECORD_MORE, "b");
    for (uint32_t i = 0; i < BODIES; i++)
        put(RECORD_CALL, 1 + i * 11 % BODIES, 0, 0, "c");
    const char *data = stream.data;
    size_t len = stream.len;
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    for (uint32_t i = 0; i < BODIES; i++) {
        assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
        assert_int_equal(rec.h.call, 1 + i * 11 % BODIES);
        assert_memory_equal(rec.body, "abc", 3);
    }
    record_reader_done(&r);
}

static void another_type_inside_a_body_is_refused(void **state)
{
    (void)state;
    put(RECORD_CALL, 1, 0, RECORD_MORE, "a");
    put(RECORD_ARGS, 1, 0, 0, "b");
    assert_int_equal(read_all((struct record_reader_config){0}, 100), ERR_PROTO);
    assert_int_equal(read_all((struct record_reader_config){.whole = true}, 3), ERR_PROTO);
}

static void a_body_over_the_cap_is_refused(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct record_reader_config config = {.whole = whole, .max_body = 8};
        buf_reset(&stream);
        put(RECORD_CALL, 1, 0, RECORD_MORE, "1234");
        put(RECORD_CALL, 1, 0, 0, "5678");
        assert_int_equal(read_all(config, 5), 0);
        put(RECORD_CALL, 1, 0, RECORD_MORE, "12345678");
        put(RECORD_CALL, 1, 0, 0, "9");
        assert_int_equal(read_all(config, 5), ERR_LIMIT);
        buf_reset(&stream);
        put(RECORD_CALL, 1, 0, 0, "123456789");
        assert_int_equal(read_all(config, 5), ERR_LIMIT);
    }
}

static void too_many_unfinished_bodies_are_refused(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        put(RECORD_CALL, 1 + i, 0, RECORD_MORE, "x");
    assert_int_equal(read_all((struct record_reader_config){.max_open = 4}, 100), 0);
    assert_int_equal(read_all((struct record_reader_config){.max_open = 3}, 100), ERR_LIMIT);
}

static void the_quota_bounds_what_is_collected(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct quota *q = quota_new(10, NULL);
        buf_reset(&stream);
        put(RECORD_CALL, 1, 0, RECORD_MORE, "1234567890");
        put(RECORD_CALL, 1, 0, 0, "1");
        // Not whole, each record is paid for only while it is being read, and need not be.
        assert_int_equal(read_all((struct record_reader_config){.whole = whole, .quota = q}, 9), whole ? ERR_LIMIT : 0);
        assert_int_equal(quota_used(q), 0);
        put(RECORD_CALL, 2, 0, 0, "12345678901");
        assert_int_equal(read_all((struct record_reader_config){.whole = whole, .quota = q}, 9), whole ? ERR_LIMIT : 0);
        assert_int_equal(quota_used(q), 0);
        quota_unref(q);
    }
}

static void a_record_that_nobody_paid_for_is_not_collected(void **state)
{
    (void)state;
    struct quota *q = quota_new(3, NULL);
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    record_reader_init(&r, &(struct record_reader_config){.quota = q});
    put(RECORD_CALL, 1, 0, RECORD_MORE, "1234");
    const char *data = stream.data;
    size_t len = stream.len - 1;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 0);
    len = 1;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_memory_equal(rec.body, "1234", 4);
    assert_false(blob_recharge(rec.blob, q));
    assert_false(record_reader_collect(&r, &rec, 100, 0));
    record_reader_done(&r);
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
}

static void an_error_is_final(void **state)
{
    (void)state;
    struct record_reader r;
    record_reader_init(&r, &(struct record_reader_config){0});
    put(99, 1, 0, 0, "");
    assert_int_equal(read_stream(&r, 100, NULL), ERR_PROTO);
    buf_reset(&stream);
    put(RECORD_HELLO, 0, 0, 0, "");
    assert_int_equal(read_stream(&r, 100, NULL), ERR_PROTO);
    assert_string_equal(buf_str(&trace), "");
    record_reader_done(&r);
}

static void a_message_that_ends_inside_a_record_is_noticed(void **state)
{
    (void)state;
    put(RECORD_HELLO, 0, 0, 0, "{}");
    size_t whole = stream.len;
    for (size_t cut = 1; cut < whole; cut++) {
        struct record_reader r;
        record_reader_init(&r, &(struct record_reader_config){0});
        stream.len = cut;
        assert_int_equal(read_stream(&r, 100, NULL), 0);
        assert_false(record_reader_at_boundary(&r));
        stream.len = whole;
        record_reader_done(&r);
    }
}

// Bodies of many calls, cut at random into records, records at random into reads: whole bodies come out as they were.
static void random_bodies_in_random_cuts_come_out_whole(void **state)
{
    (void)state;
    struct rand rand;
    rand_seed(&rand, 4711);
    for (int round = 0; round < 50; round++) {
        enum { N = 6 };
        struct buf bodies[N], want = BUF_INIT(1 << 20);
        size_t at[N] = {0}, left = N;
        buf_reset(&stream);
        for (int i = 0; i < N; i++) {
            bodies[i] = BUF_INIT(4096);
            for (int64_t n = rand_range(&rand, 1, 300); n; n--)
                buf_putc(&bodies[i], (char)rand_range(&rand, 'a', 'z'));
        }
        while (left) {
            size_t i = (size_t)rand_below(&rand, N), rest = bodies[i].len - at[i];
            if (!rest)
                continue;
            size_t n = (size_t)rand_range(&rand, 1, (int64_t)rest);
            char part[301] = "";
            memcpy(part, bodies[i].data + at[i], n);
            put(RECORD_CALL, (uint32_t)i + 1, 0, n < rest ? RECORD_MORE : 0, part);
            at[i] += n;
            if (n == rest) {
                left--;
                buf_printf(&want, "%zu %s\n", i + 1, buf_str(&bodies[i]));
            }
        }
        struct record_reader r;
        record_reader_init(&r, &(struct record_reader_config){.whole = true});
        assert_int_equal(read_stream(&r, (size_t)rand_range(&rand, 1, 64), &rand), 0);
        record_reader_done(&r);
        struct buf got = BUF_INIT(1 << 20);
        for (char *line = trace.data, *end; line && *line; line = end + 1) { // "CALL call=N ... BODY"
            end = strchr(line, '\n');
            *end = '\0';
            buf_printf(&got, "%ld %s\n", strtol(strchr(line, '=') + 1, NULL, 10), strrchr(line, ' ') + 1);
        }
        assert_string_equal(buf_str(&got), buf_str(&want));
        buf_done(&got);
        buf_done(&want);
        for (int i = 0; i < N; i++)
            buf_done(&bodies[i]);
    }
}

static void bodies_that_are_collected_come_whole(void **state)
{
    (void)state;
    struct quota *q = quota_new(1 << 20, NULL);
    put(RECORD_CALL, 1, 0, RECORD_MORE, "one ");
    put(RECORD_CALL, 2, 0, 0, "two");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "and ");
    put(RECORD_CALL, 3, 0, RECORD_MORE, "three ");
    put(RECORD_CALL, 1, 0, 0, "all");
    put(RECORD_CALL, 3, 0, 0, "too");
    collect = 64;
    for (size_t step = 1; step < 100; step += 7) {
        assert_int_equal(read_all((struct record_reader_config){.quota = q}, step), 0);
        assert_string_equal(buf_str(&trace), "CALL call=2 rank=0 flags=0 at=0 seq=2 two\n"
                                             "CALL call=1 rank=0 flags=0 at=0 seq=1 one and all\n"
                                             "CALL call=3 rank=0 flags=0 at=0 seq=3 three too\n");
    }
    quota_unref(q);
}

static void what_is_too_long_to_be_collected_goes_on_in_pieces(void **state)
{
    (void)state;
    put(RECORD_CALL, 1, 0, RECORD_MORE, "12345");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "678");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "9");
    put(RECORD_CALL, 1, 0, 0, "0");
    put(RECORD_CALL, 2, 0, RECORD_MORE, "123456789"); // too long already
    put(RECORD_CALL, 2, 0, 0, "0");
    collect = 8;
    assert_int_equal(read_all((struct record_reader_config){0}, 1000), 0);
    assert_string_equal(buf_str(&trace), "over CALL call=1 rank=0 flags=1 at=8 seq=1 9\n"
                                         "CALL call=1 rank=0 flags=0 at=9 seq=1 0\n"
                                         "CALL call=2 rank=0 flags=1 at=0 seq=2 123456789\n"
                                         "CALL call=2 rank=0 flags=0 at=9 seq=2 0\n");
}

static void a_first_piece_can_be_asked_for(void **state)
{
    (void)state;
    put(RECORD_CALL, 1, 0, RECORD_MORE, "12");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "34");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "567");
    put(RECORD_CALL, 1, 0, RECORD_MORE, "8");
    put(RECORD_CALL, 1, 0, 0, "9");
    collect = 100;
    enough = 6;
    for (size_t step = 1; step < 100; step += 7) {
        assert_int_equal(read_all((struct record_reader_config){0}, step), 0);
        assert_string_equal(buf_str(&trace), "CALL call=1 rank=0 flags=1 at=0 seq=1 1234567\n"
                                             "CALL call=1 rank=0 flags=1 at=7 seq=1 8\n"
                                             "CALL call=1 rank=0 flags=0 at=8 seq=1 9\n");
    }
}

static void only_what_is_collected_holds_up_others(void **state)
{
    (void)state;
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    record_reader_init(&r, &(struct record_reader_config){0});
    put(RECORD_CALL, 1, 0, RECORD_MORE, "a");
    put(RECORD_CALL, 2, 0, RECORD_MORE, "b");
    const char *data = stream.data;
    size_t len = stream.len;
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_true(record_reader_unfinished(&r) == UINT64_MAX);
    assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
    assert_true(record_reader_collect(&r, &rec, 10, 0));
    assert_true(record_reader_unfinished(&r) == 2);
    record_reader_done(&r);
}

static void a_call_that_has_not_come_in_whole_has_its_id(void **state)
{
    (void)state;
    put(RECORD_CALL, 1, 3, RECORD_MORE, "half");
    put(RECORD_RESULT, 1, 2, 0, "an answer has nothing to do with it");
    put(RECORD_CALL, 1, 2, 0, "another rank");
    assert_int_equal(read_all((struct record_reader_config){.whole = true}, 7), ERR_PROTO);
}

static void the_answer_of_the_group_ends_those_of_ranks(void **state)
{
    (void)state;
    put(RECORD_RESULT, 1, 3, RECORD_MORE, "half");
    put(RECORD_ERROR, 1, RECORD_GROUP, 0, "{}");
    put(RECORD_RESULT, 1, RECORD_GROUP, RECORD_MORE, "half");
    put(RECORD_ERROR, 1, 2, 0, "{}");
    put(RECORD_RESULT, 1, 3, 0, "again");
    assert_int_equal(read_all((struct record_reader_config){.whole = true}, 7), 0);
    assert_string_equal(buf_str(&trace), "ERROR call=1 rank=-1 flags=0 at=0 seq=2 {}\n"
                                         "ERROR call=1 rank=2 flags=0 at=0 seq=4 {}\n"
                                         "RESULT call=1 rank=3 flags=0 at=0 seq=5 again\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(records_come_out_the_same_however_the_bytes_are_cut),
        T(whole_bodies_are_put_together),
        T(a_whole_record_is_not_copied),
        T(a_body_may_be_put_where_it_belongs),
        T(there_is_no_buffer_for_what_the_quota_does_not_allow),
        T(a_body_can_be_kept),
        T(the_order_in_which_calls_began_can_be_kept),
        T(a_cancel_ends_an_unfinished_call_and_an_error_a_result),
        T(a_call_that_has_not_come_in_whole_has_its_id),
        T(another_type_inside_a_body_is_refused),
        T(pieces_that_are_collected_are_counted),
        T(each_of_many_bodies_goes_on),
        T(a_body_over_the_cap_is_refused),
        T(too_many_unfinished_bodies_are_refused),
        T(the_quota_bounds_what_is_collected),
        T(a_record_that_nobody_paid_for_is_not_collected),
        T(an_error_is_final),
        T(a_message_that_ends_inside_a_record_is_noticed),
        T(random_bodies_in_random_cuts_come_out_whole),
        T(bodies_that_are_collected_come_whole),
        T(what_is_too_long_to_be_collected_goes_on_in_pieces),
        T(a_first_piece_can_be_asked_for),
        T(only_what_is_collected_holds_up_others),
        T(the_answer_of_the_group_ends_those_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
