// SPDX-License-Identifier: Apache-2.0
// docs/protocol.md against the code: each example is decoded, compared with what the page says of it, and encoded
// again; the tables of types and modes have the code's numbers.
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "common/wire/mode.h"
#include "common/wire/record_reader.h"
#include "common/wire/record_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *page;

static int setup(void **state)
{
    struct buf text = BUF_INIT(1 << 20);
    char piece[4096];
    (void)state;
    FILE *f = fopen("docs/protocol.md", "re");
    if (!f)
        return -1;
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_append(&text, piece, n);
    fclose(f);
    page = buf_take(&text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(page);
    return 0;
}

struct example {
    struct buf bytes, want;
};

static void add_bytes(struct buf *out, const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char pair[3] = {line[i], i + 1 < len ? line[i + 1] : '\0', '\0'}, *end;
        if (line[i] == ' ')
            continue;
        buf_putc(out, (char)strtoul(pair, &end, 16));
        assert_ptr_equal(end, pair + 2);
        i++;
    }
}

// The example that begins at `at`, or behind it; returns where it ends, NULL = there is none.
static const char *next_example(const char *at, struct example *ret)
{
    static const char fence[] = "```record\n";
    const char *begin = strstr(at, fence);
    if (!begin)
        return NULL;
    ret->bytes = BUF_INIT(4096);
    ret->want = BUF_INIT(4096);
    for (const char *line = begin + sizeof fence - 1, *end;; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        if (str_starts(line, "```"))
            return end;
        if (*line == '=') {
            buf_append(&ret->want, line + 2, (size_t)(end - line) - 1);
        } else if (*line != '#') {
            add_bytes(&ret->bytes, line, (size_t)(end - line));
        }
    }
}

static void describe(struct buf *out, const struct record *rec)
{
    char rank[16] = "group";
    if (rec->h.rank != RECORD_GROUP)
        snprintf(rank, sizeof rank, "%u", rec->h.rank);
    buf_printf(out, "%s call=%u rank=%s flags=%u dispatch=%u execute=%u body=%zu\n", record_type_name(rec->h.type),
               rec->h.call, rank, rec->h.flags, rec->h.dispatch, rec->h.execute, rec->len);
}

// A record by reference as it is; the reader would look for the memory.
static bool next_shared(const char **data, size_t *len, struct record *ret)
{
    struct err err = ERR_INIT;
    if (*len < RECORD_HEADER_SIZE || !((*data)[13] & RECORD_SHARED))
        return false;
    assert_int_equal(record_header_decode(*data, &ret->h, &err), 0);
    ret->body = *data + RECORD_HEADER_SIZE;
    ret->len = ret->h.len;
    *data += RECORD_HEADER_SIZE + ret->len;
    *len -= RECORD_HEADER_SIZE + ret->len;
    return true;
}

static void check_example(const struct example *e)
{
    struct buf got = BUF_INIT(4096), again = BUF_INIT(4096);
    struct record_reader r;
    struct record rec;
    struct record_call call;
    struct err err = ERR_INIT;
    const char *data = e->bytes.data;
    size_t len = e->bytes.len;
    record_reader_init(&r, &(struct record_reader_config){0});
    while (next_shared(&data, &len, &rec) || record_reader_next(&r, &data, &len, &rec, &err) == 1) {
        char head[RECORD_HEADER_SIZE];
        describe(&got, &rec);
        record_header_encode(head, &rec.h);
        buf_append(&again, head, sizeof head);
        buf_append(&again, rec.body, rec.len);
        if (rec.h.type == RECORD_CALL && !(rec.h.flags & RECORD_SHARED))
            assert_int_equal(record_call_decode(rec.body, rec.len, &call, &err), 0);
    }
    assert_string_equal(err.msg, "");
    assert_true(record_reader_at_boundary(&r));
    assert_string_equal(buf_str(&got), buf_str(&e->want));
    assert_int_equal(again.len, e->bytes.len);
    assert_memory_equal(again.data, e->bytes.data, again.len);
    record_reader_done(&r);
    buf_done(&got);
    buf_done(&again);
}

static void every_example_is_what_the_page_says(void **state)
{
    (void)state;
    struct example e;
    int n = 0;
    for (const char *at = page; (at = next_example(at, &e)); n++) {
        check_example(&e);
        buf_done(&e.bytes);
        buf_done(&e.want);
    }
    assert_in_range(n, 6, 20);
}

static void the_writer_makes_the_first_example(void **state)
{
    (void)state;
    struct example e;
    struct record_writer w;
    struct err err = ERR_INIT;
    static const char head[] = "{\"method\":\"add\"}";
    char prefix[4], out[RECORD_MESSAGE];
    assert_non_null(next_example(page, &e));
    record_call_prefix(prefix, sizeof head - 1);
    struct blob *body = blob_copy(prefix, sizeof prefix, NULL);
    struct blob *text = blob_copy("{\"method\":\"add\"}[10]", 20, NULL);
    record_writer_init(&w, 1 << 20);
    const struct record_header h = {
        .call = 1, .rank = RECORD_GROUP, .type = RECORD_CALL, .dispatch = RECORD_ONE_TO_ALL, .execute = RECORD_ALL};
    const struct record_part parts[] = {{body, 0, 4}, {text, 0, 20}};
    assert_int_equal(record_writer_push(&w, &h, parts, 2, &err), 0);
    assert_int_equal(record_writer_fill(&w, out, sizeof out), e.bytes.len);
    assert_memory_equal(out, e.bytes.data, e.bytes.len);
    record_writer_done(&w);
    blob_unref(body);
    blob_unref(text);
    buf_done(&e.bytes);
    buf_done(&e.want);
}

// The records of the example with a batch: what the caller sends, and what each rank gets.
static void records_of_the_batch(const struct example *e, struct record_call *calls, size_t n)
{
    struct record_reader r;
    struct record rec;
    struct err err = ERR_INIT;
    const char *data = e->bytes.data;
    size_t len = e->bytes.len;
    record_reader_init(&r, &(struct record_reader_config){0});
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(record_reader_next(&r, &data, &len, &rec, &err), 1);
        assert_int_equal(rec.h.dispatch, RECORD_DP_COMPUTE_PROTO);
        assert_int_equal(record_call_decode(rec.body, rec.len, &calls[i], &err), 0);
    }
    assert_int_equal(len, 0);
    record_reader_done(&r);
}

static void the_batch_is_cut_as_the_page_says(void **state)
{
    (void)state;
    struct example e;
    struct arena a = ARENA_INIT;
    struct record_call calls[3];
    struct batch b;
    struct err err = ERR_INIT;
    size_t each, added;
    assert_non_null(next_example(strstr(page, "### Batches"), &e));
    records_of_the_batch(&e, calls, 3);
    assert_int_equal(batch_read(calls[0].args, calls[0].args_len, &a, &b, &err), 0);
    assert_int_equal(batch_pieces(b.rows, 2, false, &each, &added, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        struct scatter s = SCATTER_INIT;
        assert_int_equal(batch_slice(&b, i * each, each, &a, &s, &err), 0);
        assert_int_equal(s.len, calls[i + 1].args_len);
        char *piece = arena_alloc(&a, s.len);
        scatter_gather(&s, &(struct scatter_source){calls[0].args, calls[0].args_len}, piece);
        assert_memory_equal(piece, calls[i + 1].args, s.len);
        scatter_done(&s);
    }
    buf_done(&e.bytes);
    buf_done(&e.want);
    arena_done(&a);
}

static void the_list_of_bodies_is_one(void **state)
{
    (void)state;
    struct example e;
    struct body_list l;
    struct scatter_source body;
    struct err err = ERR_INIT;
    assert_non_null(next_example(strstr(page, "### Lists of bodies"), &e));
    assert_int_equal(body_list_read(e.bytes.data + RECORD_HEADER_SIZE, e.bytes.len - RECORD_HEADER_SIZE, &l, &err), 0);
    assert_int_equal(l.n, 2);
    assert_true(body_list_next(&l, &body));
    assert_memory_equal(body.data, "[1]", body.len);
    assert_true(body_list_next(&l, &body));
    assert_true(batch_is_safetensors(body.data, body.len));
    buf_done(&e.bytes);
    buf_done(&e.want);
}

static void has_row(unsigned number, const char *name)
{
    char row[64];
    snprintf(row, sizeof row, "\n| %u | %s |", number, name);
    if (!strstr(page, row))
        fail_msg("docs/protocol.md has no row \"| %u | %s |\"", number, name);
}

static void the_tables_have_the_codes_numbers(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++)
        if (record_type_name(type)[0] != '?')
            has_row(type, record_type_name(type));
    has_row(0, "default");
    for (unsigned i = 1; i < RECORD_DISPATCH_COUNT; i++)
        has_row(i, mode_dispatch_name(i));
    for (unsigned i = 1; i < RECORD_EXECUTE_COUNT; i++)
        has_row(i, mode_execute_name(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_is_what_the_page_says), cmocka_unit_test(the_writer_makes_the_first_example),
        cmocka_unit_test(the_batch_is_cut_as_the_page_says),   cmocka_unit_test(the_list_of_bodies_is_one),
        cmocka_unit_test(the_tables_have_the_codes_numbers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
