// SPDX-License-Identifier: Apache-2.0
// Two ends of a connection, a writer and a reader each, and memory that both have.
#include "common/wire/share.h"

#include "common/base/mem.h"
#include "common/wire/record_reader.h"
#include "common/wire/record_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4 << 20, LONG = 300 << 10 };

struct memory { // stands for a pool, and for a view of it
    struct area area;
    char *data;
    unsigned given, ended;
};

struct end {
    struct share share;
    struct record_writer out;
    struct record_reader in;
    struct end *peer;
    struct memory *sees; // what the peer's descriptor leads to
    unsigned opened;
    int taken;                // what share_record() returned last
    bool wrong;               // the peer was
    struct blob *held, *tail; // of the record that pass() has returned
};

static char pool[SIZE];

static void memory_give(struct area *a, const char *data, uint32_t tag)
{
    (void)data, (void)tag;
    CONTAINER_OF(a, struct memory, area)->given++;
}

static void memory_end(struct area *a)
{
    CONTAINER_OF(a, struct memory, area)->ended++;
}

static void memory_init(struct memory *m)
{
    *m = (struct memory){.area = {.fd = 5, .base = pool, .size = SIZE, .give = memory_give, .end = memory_end},
                         .data = pool};
    area_init(&m->area);
}

static void send(void *ctx, enum record_type type, const char *body, size_t len)
{
    struct end *e = ctx;
    struct err err = ERR_INIT;
    const struct record_header h = {.type = (uint8_t)type, .rank = RECORD_GROUP};
    assert_int_equal(record_writer_copy(&e->out, &h, body, len, &err), 0);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    struct end *e = ctx;
    if (fd != 5 || size != SIZE) {
        err_set(err, ERR_PROTO, "no such memory");
        return NULL;
    }
    e->opened++;
    memory_init(e->sees);
    return &e->sees->area;
}

static void end_init(struct end *e, struct end *peer, struct memory *sees, bool tail)
{
    *e = (struct end){.peer = peer, .sees = sees};
    record_writer_init(&e->out, 64 << 20);
    share_init(&e->share, &(struct share_config){.send = send, .open = open_area, .ctx = e});
    e->out.share = &e->share;
    record_reader_init(&e->in, &(struct record_reader_config){.whole = true, .tail = tail, .share = &e->share});
}

static void hold(struct end *e, const struct record *rec)
{
    blob_unref(e->held);
    blob_unref(e->tail);
    e->held = rec && rec->blob ? blob_ref(rec->blob) : NULL;
    e->tail = rec && rec->tail ? blob_ref(rec->tail) : NULL;
}

static void end_done(struct end *e)
{
    hold(e, NULL);
    record_writer_done(&e->out);
    share_done(&e->share);
    record_reader_done(&e->in);
}

struct pair {
    struct memory own, seen, unseen;
    struct end from, to;
};

// Everything that `from` has queued; returns whether a CALL or RESULT came, the last one, which is valid until the
// next.
static bool pass(struct end *from, struct record *ret)
{
    static char message[RECORD_MESSAGE];
    struct err err = ERR_INIT;
    struct end *to = from->peer;
    struct record rec;
    bool got = false;
    for (size_t n; (n = record_writer_fill(&from->out, message, sizeof message)) > 0;) {
        const char *p = message;
        int r = 0;
        while (!to->wrong && (r = record_reader_next(&to->in, &p, &n, &rec, &err)) > 0) {
            if (rec.h.type == RECORD_MEMORY || rec.h.type == RECORD_RETURN) {
                to->taken = share_record(&to->share, rec.h.type, rec.body, rec.len, &err);
                to->share.lends = to->share.lends || to->taken == 1;
                r = MIN(to->taken, 0);
            } else {
                *ret = rec;
                got = true;
                hold(to, &rec);
            }
            to->wrong = to->wrong || r < 0;
        }
        to->wrong = to->wrong || r < 0;
    }
    return got;
}

static void start(struct pair *p, bool tail)
{
    struct record rec;
    memory_init(&p->own);
    end_init(&p->from, &p->to, &p->unseen, tail);
    end_init(&p->to, &p->from, &p->seen, tail);
    share_offer(&p->from.share, &p->own.area);
    assert_false(pass(&p->from, &rec));
    assert_int_equal(p->to.opened, 1);
    assert_false(p->from.share.lends); // not before the other has said that it can
    assert_false(pass(&p->to, &rec));
    assert_true(p->from.share.lends);
}

static void stop(struct pair *p)
{
    end_done(&p->from);
    end_done(&p->to);
    area_unref(&p->own.area);
    assert_int_equal(p->own.ended, 1);
    assert_int_equal(p->seen.ended, 1);
}

static struct blob *long_blob(struct pair *p, size_t offset, char fill)
{
    memset(pool + offset, fill, LONG);
    return blob_in_area(&p->own.area, pool + offset, LONG, 0);
}

static void push(struct end *e, enum record_type type, struct blob *const *blobs, size_t n)
{
    struct record_part parts[4];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct record_part){blobs[i], 0, blobs[i]->len};
    const struct record_header h = {.type = (uint8_t)type, .call = 9, .rank = RECORD_GROUP};
    assert_int_equal(record_writer_push(&e->out, &h, parts, n, &err), 0);
    for (size_t i = 0; i < n; i++)
        blob_unref(blobs[i]);
}

static void a_result_is_read_where_it_lies_and_given_back(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    push(&p.from, RECORD_RESULT, (struct blob *[]){long_blob(&p, 4096, 'a')}, 1);
    assert_true(pass(&p.from, &rec));
    assert_ptr_equal(rec.body, pool + 4096);
    assert_int_equal(rec.len, LONG);
    assert_false(pass(&p.to, &rec));
    assert_int_equal(p.own.given, 0);
    assert_true(share_has_lent(&p.from.share, &p.own.area));
    assert_false(share_has_lent(&p.from.share, &p.seen.area));
    hold(&p.to, NULL);
    assert_false(pass(&p.to, &rec));
    assert_int_equal(p.own.given, 1);
    assert_false(share_has_lent(&p.from.share, &p.own.area));
    assert_int_equal(p.to.opened, 1); // told of it once
    stop(&p);
}

static void a_calls_head_is_copied_and_its_arguments_are_not(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, true);
    push(&p.from, RECORD_CALL, (struct blob *[]){blob_copy("\4\0\0\0head", 8, NULL), long_blob(&p, 0, 'a')}, 2);
    assert_true(pass(&p.from, &rec));
    assert_int_equal(rec.len, 8);
    assert_memory_equal(rec.body + 4, "head", 4);
    assert_non_null(rec.tail);
    assert_ptr_equal(rec.tail->data, pool);
    assert_int_equal(rec.tail->len, LONG);
    stop(&p);
    assert_int_equal(p.own.given, 1);
}

static void what_is_collected_is_copied(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    struct blob *parts[] = {blob_copy("[", 1, NULL), long_blob(&p, 0, 'a'), long_blob(&p, LONG, 'b'),
                            blob_copy("]", 1, NULL)};
    push(&p.from, RECORD_RESULT, parts, 4);
    assert_true(pass(&p.from, &rec));
    assert_int_equal(rec.len, 2 * LONG + 2);
    assert_null(rec.tail);
    assert_true(rec.body < pool || rec.body >= pool + SIZE);
    assert_true(rec.body[0] == '[' && rec.body[LONG] == 'a' && rec.body[LONG + 1] == 'b' &&
                rec.body[rec.len - 1] == ']');
    assert_false(pass(&p.to, &rec));
    assert_int_equal(p.own.given, 2); // at once
    stop(&p);
}

// A head that has to be read, and values that only pass.
static void what_is_wanted_of_it_is_copied_and_the_rest_comes_as_it_is(void **state)
{
    (void)state;
    static char message[RECORD_MESSAGE];
    struct pair p;
    struct record rec;
    struct err err = ERR_INIT;
    enum { FIRST = 8, WANT = 1000 };
    start(&p, false);
    p.to.in.config.whole = false;
    push(&p.from, RECORD_CALL, (struct blob *[]){blob_copy("\4\0\0\0head", FIRST, NULL), long_blob(&p, 0, 'a')}, 2);
    size_t len = record_writer_fill(&p.from.out, message, sizeof message);
    const char *at = message;
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 1);
    assert_int_equal(rec.len, FIRST);
    assert_null(rec.next);
    assert_true(record_reader_collect(&p.to.in, &rec, SIZE, FIRST)); // first a look, then a little, then more
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 1);
    assert_int_equal(rec.len, FIRST);
    assert_true(rec.h.flags & RECORD_MORE);
    assert_ptr_equal(rec.next, pool);
    assert_int_equal(rec.next_len, LONG);
    assert_true(rec.next_last);
    assert_true(record_reader_collect(&p.to.in, &rec, SIZE, 16));
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 1);
    assert_int_equal(rec.len, 16);
    assert_true(rec.h.flags & RECORD_MORE);
    assert_true(record_reader_collect(&p.to.in, &rec, SIZE, WANT));
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 1);
    assert_int_equal(rec.len, WANT);
    assert_true(rec.h.flags & RECORD_MORE);
    assert_null(rec.blob->area);
    assert_ptr_equal(rec.next, pool + WANT - FIRST); // which can be seen already
    assert_int_equal(rec.next_len, LONG - (WANT - FIRST));
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 1);
    assert_false(rec.h.flags & RECORD_MORE);
    assert_int_equal(rec.offset, WANT);
    assert_null(rec.next);
    assert_ptr_equal(rec.body, pool + WANT - FIRST);
    assert_int_equal(rec.len, LONG - (WANT - FIRST));
    assert_int_equal(record_reader_next(&p.to.in, &at, &len, &rec, &err), 0);
    assert_true(record_reader_at_boundary(&p.to.in));
    assert_false(pass(&p.to, &rec));
    assert_int_equal(p.own.given, 1);
    stop(&p);
}

static void what_is_short_or_elsewhere_goes_as_bytes(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    push(&p.from, RECORD_RESULT, (struct blob *[]){blob_in_area(&p.own.area, pool, SHARE_MIN - 1, 0)}, 1);
    assert_true(pass(&p.from, &rec));
    assert_true(rec.body < pool || rec.body >= pool + SIZE);
    struct blob *other = blob_new(LONG, NULL);
    memset(other->data, 'x', LONG);
    push(&p.from, RECORD_RESULT, (struct blob *[]){other}, 1);
    assert_true(pass(&p.from, &rec));
    assert_int_equal(rec.len, LONG);
    stop(&p);
}

static void what_was_lent_is_free_when_the_connection_ends(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    push(&p.from, RECORD_RESULT, (struct blob *[]){long_blob(&p, 0, 'a')}, 1);
    push(&p.from, RECORD_RESULT, (struct blob *[]){long_blob(&p, LONG, 'b')}, 1);
    assert_true(pass(&p.from, &rec));
    struct blob *kept = blob_ref(p.to.held);
    end_done(&p.from);
    assert_int_equal(p.own.given, 2);
    end_done(&p.to);
    assert_int_equal(p.seen.ended, 0); // somebody still reads
    assert_int_equal(kept->data[0], 'b');
    blob_unref(kept);
    assert_int_equal(p.seen.ended, 1);
    area_unref(&p.own.area);
    assert_int_equal(p.own.ended, 1);
}

static void memory_that_ends_is_forgotten(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    area_unref(&p.own.area);
    assert_int_equal(p.own.ended, 1);
    assert_false(pass(&p.from, &rec));
    assert_int_equal(p.seen.ended, 1);
    assert_false(p.to.wrong);
    end_done(&p.from);
    end_done(&p.to);
}

// A wrong body from a peer, made by hand.
static void refused(uint8_t type, const uint32_t *words, size_t n, const char *why)
{
    struct pair p;
    struct err err = ERR_INIT;
    struct blob *blob;
    char body[64];
    start(&p, false);
    for (size_t i = 0; i < n; i++) {
        uint32_t v = htole32(words[i]);
        memcpy(body + 4 * i, &v, sizeof v);
    }
    int r = type == RECORD_CALL ? share_borrow(&p.to.share, body, 4 * n, &blob, &err)
                                : share_record(&p.to.share, type, body, 4 * n, &err);
    assert_true(r < 0);
    if (!strstr(err.msg, why))
        fail_msg("%s", err.msg);
    stop(&p);
}

static void a_peer_that_lies_is_refused(void **state)
{
    (void)state;
    refused(RECORD_MEMORY, (uint32_t[]){1, 5, SIZE}, 3, "a MEMORY of 12 bytes");
    refused(RECORD_MEMORY, (uint32_t[]){77777, 6, SIZE, 0}, 4, "no such memory");
    refused(RECORD_MEMORY, (uint32_t[]){77777, 5, 0, 0}, 4, "is not known");
    refused(RECORD_RETURN, (uint32_t[]){0}, 1, "was not lent");
    refused(RECORD_RETURN, (uint32_t[]){UINT32_MAX}, 1, "was not lent");
    refused(RECORD_CALL, (uint32_t[]){77777, 0, 0, 0, LONG, 0}, 6, "a reference outside of its area");
    refused(RECORD_CALL, (uint32_t[]){77777, 0, 0, 0}, 4, "a reference of 16 bytes");
}

static void a_reference_that_leads_out_is_refused(void **state)
{
    (void)state;
    static const uint64_t wrong[][2] = {{0, 0},        {SIZE, 1},       {0, SIZE + 1},
                                        {SIZE - 1, 2}, {UINT64_MAX, 2}, {1, UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct pair p;
        struct err err = ERR_INIT;
        struct blob *blob;
        char body[SHARE_DESCRIPTOR];
        start(&p, false);
        uint32_t id = htole32(p.own.area.id), loan = 0;
        uint64_t offset = htole64(wrong[i][0]), len = htole64(wrong[i][1]);
        memcpy(body, &id, 4);
        memcpy(body + 4, &loan, 4);
        memcpy(body + 8, &offset, 8);
        memcpy(body + 16, &len, 8);
        assert_int_equal(share_borrow(&p.to.share, body, sizeof body, &blob, &err), ERR_PROTO);
        stop(&p);
    }
}

static void a_call_cannot_begin_with_a_reference(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, true);
    push(&p.from, RECORD_CALL, (struct blob *[]){long_blob(&p, 0, 'a')}, 1);
    assert_false(pass(&p.from, &rec));
    assert_true(p.to.wrong);
    stop(&p);
}

static void without_shared_memory_a_reference_is_refused(void **state)
{
    (void)state;
    struct pair p;
    struct record rec;
    start(&p, false);
    p.to.in.config.share = NULL;
    push(&p.from, RECORD_RESULT, (struct blob *[]){long_blob(&p, 0, 'a')}, 1);
    assert_false(pass(&p.from, &rec));
    assert_true(p.to.wrong);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_is_read_where_it_lies_and_given_back),
        cmocka_unit_test(a_calls_head_is_copied_and_its_arguments_are_not),
        cmocka_unit_test(what_is_collected_is_copied),
        cmocka_unit_test(what_is_wanted_of_it_is_copied_and_the_rest_comes_as_it_is),
        cmocka_unit_test(what_is_short_or_elsewhere_goes_as_bytes),
        cmocka_unit_test(what_was_lent_is_free_when_the_connection_ends),
        cmocka_unit_test(memory_that_ends_is_forgotten),
        cmocka_unit_test(a_peer_that_lies_is_refused),
        cmocka_unit_test(a_reference_that_leads_out_is_refused),
        cmocka_unit_test(a_call_cannot_begin_with_a_reference),
        cmocka_unit_test(without_shared_memory_a_reference_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
