// SPDX-License-Identifier: Apache-2.0
#include "common/wire/archive_piece.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void what_is_written_is_read(void **state)
{
    const struct archive_piece pieces[] = {
        {.sha256 = SHA256, .offset = INT64_C(1) << 40},
        {.sha256 = SHA256, .group = "6e8a-llama", .rank = 3, .attempt = 7, .data = "a\0b", .len = 3},
        {.sha256 = SHA256, .offset = 5, .missing = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct buf body = BUF_INIT(4096);
        struct arena a = ARENA_INIT;
        struct archive_piece p;
        struct err err = ERR_INIT;
        archive_piece_write(&pieces[i], &body);
        assert_int_equal(archive_piece_read(body.data, body.len, &a, &p, &err), 0);
        assert_string_equal(p.sha256, SHA256);
        assert_int_equal(p.offset, pieces[i].offset);
        assert_int_equal(p.rank, pieces[i].rank);
        assert_int_equal(p.attempt, pieces[i].attempt);
        assert_int_equal(p.missing, pieces[i].missing);
        assert_int_equal(p.len, pieces[i].len);
        assert_memory_equal(p.data, pieces[i].data ? pieces[i].data : "", p.len);
        assert_int_equal(!p.group, !pieces[i].group);
        buf_done(&body);
        arena_done(&a);
    }
}

static void anything_else_is_refused(void **state)
{
    static const char *const heads[] = {
        "",
        "{}",
        "[]",
        "{",
        "{\"archive\":\"" SHA256 "\"}",
        "{\"archive\":\"" SHA256 "\",\"offset\":-1}",
        "{\"archive\":\"" SHA256 "0\",\"offset\":0}",
        "{\"archive\":\"../" SHA256 "\",\"offset\":0}",
        "{\"archive\":\"" SHA256 "\",\"offset\":0,\"group\":\"g\"}",
        "{\"archive\":\"" SHA256 "\",\"offset\":0,\"group\":\"g\",\"rank\":-1,\"attempt\":1}",
        "{\"archive\":\"" SHA256 "\",\"offset\":0,\"group\":\"g\",\"rank\":4294967295,\"attempt\":1}"};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct buf body = BUF_INIT(4096);
        struct arena a = ARENA_INIT;
        struct archive_piece p;
        struct err err = ERR_INIT;
        const char prefix[4] = {(char)strlen(heads[i])};
        buf_append(&body, prefix, 4);
        buf_puts(&body, heads[i]);
        assert_int_equal(archive_piece_read(body.data, body.len, &a, &p, &err), ERR_PROTO);
        err = ERR_INIT;
        assert_int_equal(archive_piece_read(body.data, 3, &a, &p, &err), ERR_PROTO);
        buf_done(&body);
        arena_done(&a);
    }
    assert_false(archive_sha256(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
