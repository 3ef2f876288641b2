// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct buf trace;

static int setup(void **state)
{
    (void)state;
    trace = BUF_INIT(1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_done(&trace);
    return 0;
}

static void note(const struct frame_event *e)
{
    static const char *const names[] = {"data", "ping", "pong", "close"};
    buf_printf(&trace, "%s%s%s%s", names[e->type], e->text ? " text" : "", e->first ? " first" : "",
               e->last ? " last" : "");
    if (e->type == FRAME_EVENT_CLOSE)
        buf_printf(&trace, " %u", e->code);
    buf_printf(&trace, " \"%.*s\"\n", (int)MIN(e->len, 20), e->data);
}

// Reads a copy of the bytes in pieces of `step`; returns the error or 0.
static int read_bytes(struct frame_reader *r, const void *bytes, size_t n, size_t step)
{
    struct err err = ERR_INIT;
    struct frame_event e;
    for (size_t at = 0; at < n;) {
        size_t len = MIN(step, n - at);
        _cleanup_(free_p) char *piece = xmalloc(len);
        char *data = piece;
        int got;
        memcpy(piece, (const char *)bytes + at, len);
        at += len;
        while ((got = frame_reader_next(r, &data, &len, &e, &err)) > 0)
            note(&e);
        if (got < 0) {
            assert_int_equal(got, err.code);
            assert_true(err.msg[0] && frame_close_code_valid(r->close_code));
            return got;
        }
        assert_int_equal(len, 0);
    }
    return 0;
}

static const char *events(bool server, const void *bytes, size_t n, size_t step)
{
    struct frame_reader r;
    frame_reader_init(&r, server, 1 << 20);
    buf_reset(&trace);
    if (read_bytes(&r, bytes, n, step) < 0)
        buf_printf(&trace, "refused %u\n", r.close_code);
    return buf_str(&trace);
}

#define EVENTS(server, bytes) events((server), (bytes), sizeof(bytes) - 1, sizeof(bytes) - 1)

// RFC 6455, 5.7: byte for byte.
static void the_examples_of_the_rfc_are_read(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(false, "\x81\x05\x48\x65\x6c\x6c\x6f"), "data text first last \"Hello\"\n");
    assert_string_equal(EVENTS(true, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
                        "data text first last \"Hello\"\n");
    assert_string_equal(EVENTS(false, "\x01\x03\x48\x65\x6c\x80\x02\x6c\x6f"),
                        "data text first \"Hel\"\ndata text last \"lo\"\n");
    assert_string_equal(EVENTS(false, "\x89\x05\x48\x65\x6c\x6c\x6f"), "ping \"Hello\"\n");
    assert_string_equal(EVENTS(true, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "pong \"Hello\"\n");
    for (int long_one = 0; long_one < 2; long_one++) { // 256 bytes, and 64 KiB
        size_t n = long_one ? 65536 : 256, head = long_one ? 10 : 4;
        _cleanup_(free_p) char *frame = xcalloc(1, head + n);
        memcpy(frame, long_one ? "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" : "\x82\x7e\x01\x00", head);
        memset(frame + head, 'x', n);
        assert_string_equal(events(false, frame, head + n, head + n), "data first last \"xxxxxxxxxxxxxxxxxxxx\"\n");
    }
}

static void the_examples_of_the_rfc_are_written(void **state)
{
    (void)state;
    static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    char out[FRAME_HEADER_MAX + 5];
    assert_int_equal(frame_header_encode(out, true, FRAME_TEXT, 5, NULL), 2);
    assert_memory_equal(out, "\x81\x05", 2);
    assert_int_equal(frame_header_encode(out, true, FRAME_TEXT, 5, key), 6);
    memcpy(out + 6, "Hello", 5);
    frame_mask(out + 6, 5, key, 0);
    assert_memory_equal(out, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
    frame_header_encode(out, false, FRAME_TEXT, 3, NULL);
    assert_memory_equal(out, "\x01\x03", 2);
    frame_header_encode(out, true, FRAME_CONTINUATION, 2, NULL);
    assert_memory_equal(out, "\x80\x02", 2);
    frame_header_encode(out, true, FRAME_PING, 5, NULL);
    assert_memory_equal(out, "\x89\x05", 2);
    assert_int_equal(frame_header_encode(out, true, FRAME_BINARY, 256, NULL), 4);
    assert_memory_equal(out, "\x82\x7e\x01\x00", 4);
    assert_int_equal(frame_header_encode(out, true, FRAME_BINARY, 65536, NULL), 10);
    assert_memory_equal(out, "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10);
}

static void header_sizes_are_known_beforehand(void **state)
{
    (void)state;
    static const uint8_t key[4];
    static const uint64_t lens[] = {0, 1, 125, 126, 65535, 65536, (uint64_t)1 << 62};
    char out[FRAME_HEADER_MAX];
    for (size_t i = 0; i < ARRAY_LEN(lens); i++)
        for (int masked = 0; masked < 2; masked++)
            assert_int_equal(frame_header_encode(out, true, FRAME_BINARY, lens[i], masked ? key : NULL),
                             frame_header_size(lens[i], masked));
}

static void masking_is_the_same_at_any_alignment_and_cut(void **state)
{
    (void)state;
    static const uint8_t key[4] = {1, 2, 3, 4};
    char want[64], got[72];
    for (size_t at = 0; at < 8; at++)
        for (size_t cut = 0; cut <= sizeof want; cut++) {
            for (size_t i = 0; i < sizeof want; i++)
                want[i] = (char)(i ^ key[i & 3]);
            for (size_t i = 0; i < sizeof want; i++)
                got[at + i] = (char)i;
            frame_mask(got + at, cut, key, 0);
            frame_mask(got + at + cut, sizeof want - cut, key, cut);
            assert_memory_equal(got + at, want, sizeof want);
        }
}

static void control_frames_may_come_between_fragments(void **state)
{
    (void)state;
    static const char bytes[] = "\x02\x02he\x89\x01p\x00\x02ll\x8a\x00\x80\x01o\x88\x05\x03\xe8"
                                "bye";
    assert_string_equal(EVENTS(false, bytes), "data first \"he\"\nping \"p\"\ndata \"ll\"\npong \"\"\ndata last \"o\"\n"
                                              "close 1000 \"bye\"\n");
    events(false, bytes, sizeof bytes - 1, 1); // each byte for itself: the same, in smaller pieces
    assert_string_equal(buf_str(&trace), "data first \"h\"\ndata \"e\"\nping \"p\"\ndata \"l\"\ndata \"l\"\npong \"\"\n"
                                         "data last \"o\"\nclose 1000 \"bye\"\n");
}

static void an_empty_message_is_one_empty_piece(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(false, "\x82\x00"), "data first last \"\"\n");
    assert_string_equal(EVENTS(false, "\x02\x00\x00\x00\x80\x00"), "data first last \"\"\n");
    assert_string_equal(EVENTS(true, "\x82\x80zzzz"), "data first last \"\"\n");
}

static void broken_frames_are_refused_with_the_right_code(void **state)
{
    (void)state;
    static const struct {
        bool server;
        unsigned code;
        size_t len;
        const char *bytes;
    } cases[] = {
        {false, 1002, 2, "\xc2\x01"},                                  // extension bits
        {false, 1002, 2, "\x83\x01"},                                  // opcodes that do not exist
        {false, 1002, 2, "\x8b\x00"},                                  //
        {false, 1002, 6, "\x82\x81zzzz"},                              // masked by a server
        {true, 1002, 2, "\x82\x01"},                                   // not masked by a client
        {false, 1002, 2, "\x80\x01"},                                  // a continuation of nothing
        {false, 1002, 5, "\x02\x01x\x82\x01"},                         // a message inside a message
        {false, 1002, 2, "\x09\x00"},                                  // a ping in fragments
        {false, 1002, 4, "\x89\x7e\x00\x7e"},                          // a ping of 126 bytes
        {false, 1002, 4, "\x82\x7e\x00\x7d"},                          // lengths that are not the shortest
        {false, 1002, 10, "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"}, //
        {false, 1002, 10, "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"}, // the highest bit
        {false, 1009, 10, "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"}, // over the cap
        {false, 1009, 10, "\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x01"}, // by one byte
        {false, 1002, 3, "\x88\x01\x03"},                              // half a close code
        {false, 1002, 4, "\x88\x02\x03\xed"},                          // 1005 is never sent
        {false, 1002, 4, "\x88\x02\x00\x00"},                          //
        {false, 1002, 4, "\x88\x02\x13\x88"},                          // 5000
        {false, 1007, 5, "\x88\x03\x03\xe8\xff"},                      // reason not UTF-8
        {false, 1007, 3, "\x81\x01\xff"},                              // text not UTF-8
        {false, 1007, 5, "\x81\x03\xed\xa0\x80"},                      // a surrogate
        {false, 1007, 4, "\x81\x02\xc0\x80"},                          // overlong
        {false, 1007, 6, "\x81\x04\xf4\x90\x80\x80"},                  // over U+10FFFF
        {false, 1007, 3, "\x81\x01\xc3"},                              // ends inside a character
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t step = 1; step <= cases[i].len; step++) {
            char want[32];
            snprintf(want, sizeof want, "refused %u\n", cases[i].code);
            events(cases[i].server, cases[i].bytes, cases[i].len, step);
            const char *got = strstr(buf_str(&trace), "refused");
            assert_non_null(got);
            assert_string_equal(got, want);
        }
}

static void text_may_be_cut_inside_a_character(void **state)
{
    (void)state;
    static const char bytes[] = "\x01\x04"
                                "\xc3\xa4\xe2\x82"
                                "\x80\x05"
                                "\xac\xf0\x9f\x98\x80";
    for (size_t step = 1; step < sizeof bytes; step++)
        assert_null(strstr(events(false, bytes, sizeof bytes - 1, step), "refused"));
}

static void the_cap_counts_all_fragments(void **state)
{
    (void)state;
    struct frame_reader r;
    frame_reader_init(&r, false, 4);
    assert_int_equal(read_bytes(&r,
                                "\x02\x03"
                                "abc\x80\x01"
                                "d",
                                8, 100),
                     0);
    assert_int_equal(read_bytes(&r,
                                "\x02\x03"
                                "abc\x80\x02",
                                7, 100),
                     ERR_LIMIT);
    assert_int_equal(r.close_code, FRAME_CLOSE_TOO_BIG);
    assert_int_equal(read_bytes(&r, "\x82\x00", 2, 100), ERR_LIMIT); // final
}

static void nothing_counts_after_a_close(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(false, "\x88\x00\x82\x01x\xff\xff"), "close 1005 \"\"\n");
}

static void a_reason_is_cut_at_a_character(void **state)
{
    (void)state;
    char out[FRAME_CONTROL_MAX], reason[200];
    assert_int_equal(frame_close_encode(out, 1000, NULL), 2);
    assert_memory_equal(out, "\x03\xe8", 2);
    assert_int_equal(frame_close_encode(out, 1013, "later"), 7);
    assert_memory_equal(out, "\x03\xf5later", 7);
    memset(reason, 'x', 122);
    memcpy(reason + 122, "\xc3\xa4", 3);
    assert_int_equal(frame_close_encode(out, 1000, reason), 2 + 122);
    memset(reason, 'x', 199);
    reason[199] = '\0';
    assert_int_equal(frame_close_encode(out, 1000, reason), FRAME_CONTROL_MAX);
}

static void which_close_codes_may_be_sent(void **state)
{
    (void)state;
    static const unsigned good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 4999};
    static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(frame_close_code_valid(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(frame_close_code_valid(bad[i]));
}

// Messages of random sizes in random fragments, pings between, masked, read in random pieces: they come out as they
// went in.
static void random_messages_survive_random_cuts(void **state)
{
    (void)state;
    struct rand rand;
    rand_seed(&rand, 7);
    for (int round = 0; round < 60; round++) {
        struct buf wire = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
        for (int m = 0; m < 5; m++) {
            size_t left = (size_t)rand_below(&rand, round % 2 ? 300 : 70000);
            for (bool first = true, last = false; !last; first = false) {
                size_t n = (size_t)rand_below(&rand, left + 1);
                uint64_t bits = rand_u64(&rand);
                uint8_t key[4];
                char head[FRAME_HEADER_MAX];
                memcpy(key, &bits, 4);
                last = n == left;
                left -= n;
                buf_append(&wire, head,
                           frame_header_encode(head, last, first ? FRAME_BINARY : FRAME_CONTINUATION, n, key));
                size_t from = wire.len;
                for (size_t i = 0; i < n; i++)
                    buf_putc(&wire, (char)rand_u64(&rand));
                buf_append(&want, wire.data + from, n);
                frame_mask(wire.data + from, n, key, 0);
                if (rand_below(&rand, 3) == 0)
                    buf_append(&wire, "\x89\x80zzzz", 6);
            }
            buf_puts(&want, "|");
        }
        struct frame_reader r;
        struct frame_event e;
        struct err err = ERR_INIT;
        frame_reader_init(&r, true, 1 << 20);
        for (size_t at = 0; at < wire.len;) {
            size_t cut = (size_t)rand_range(&rand, 1, round % 3 ? 5000 : 20), len = MIN(wire.len - at, cut);
            char *data = wire.data + at;
            at += len;
            while (frame_reader_next(&r, &data, &len, &e, &err) == 1)
                if (e.type == FRAME_EVENT_DATA) {
                    buf_append(&got, e.data, e.len);
                    if (e.last)
                        buf_puts(&got, "|");
                }
            assert_string_equal(err.msg, "");
        }
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.data, want.data, want.len);
        buf_done(&wire);
        buf_done(&want);
        buf_done(&got);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_examples_of_the_rfc_are_read),
        T(the_examples_of_the_rfc_are_written),
        T(header_sizes_are_known_beforehand),
        T(masking_is_the_same_at_any_alignment_and_cut),
        T(control_frames_may_come_between_fragments),
        T(an_empty_message_is_one_empty_piece),
        T(broken_frames_are_refused_with_the_right_code),
        T(text_may_be_cut_inside_a_character),
        T(the_cap_counts_all_fragments),
        T(nothing_counts_after_a_close),
        T(a_reason_is_cut_at_a_character),
        T(which_close_codes_may_be_sent),
        T(random_messages_survive_random_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
