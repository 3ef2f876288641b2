// SPDX-License-Identifier: Apache-2.0
// Bodies in a queue that their owner knows. test_record_writer.c has those that are queued as they come.
#include "common/wire/record_stream.h"

#include "common/base/mem.h"
#include "common/wire/record_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct record_writer w;
static char message[RECORD_MESSAGE];

static int setup(void **state)
{
    (void)state;
    record_writer_init(&w, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    record_writer_done(&w);
    return 0;
}

static void a_whole_body_can_be_taken_out_again_while_nothing_of_it_is_out(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct record_stream first, second;
    struct blob *b = blob_new(3000, NULL);
    memset(b->data, 'x', b->len);
    const struct record_part part = {b, 0, b->len};
    const struct record_header one = {.type = RECORD_CALL, .call = 1}, two = {.type = RECORD_CALL, .call = 2};
    assert_int_equal(record_stream_copy(&first, &w.queue, &one, "1", 1, &err), 0);
    assert_int_equal(record_stream_push(&second, &w.queue, &two, &part, 1, &err), 0);
    assert_true(record_stream_unsent(&first) && record_stream_unsent(&second));
    assert_true(record_stream_withdraw(&first));
    assert_false(record_stream_withdraw(&first));
    assert_int_equal(b->refs, 2);
    assert_true(record_writer_fill(&w, message, 2500) > 0); // a part of the second
    assert_false(record_stream_unsent(&second) || record_stream_withdraw(&second));
    while (record_writer_fill(&w, message, sizeof message))
        ;
    assert_null(second.item);
    assert_int_equal(w.queue.bytes, 0);
    assert_int_equal(b->refs, 1);
    blob_unref(b);
}

static void what_is_in_front_and_behind_a_body_that_was_taken_out_goes_out(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct record_stream s[3];
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(record_stream_copy(&s[i], &w.queue,
                                            &(struct record_header){.type = RECORD_CALL, .call = i + 1}, "", 0, &err),
                         0);
    assert_true(record_stream_withdraw(&s[1]));
    assert_int_equal(record_writer_fill(&w, message, sizeof message), (size_t)2 * RECORD_HEADER_SIZE);
    assert_false(record_stream_unsent(&s[0]) || record_stream_unsent(&s[2]));
}

static void a_body_forgets_its_owner(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct record_stream s;
    assert_int_equal(
        record_stream_copy(&s, &w.queue, &(struct record_header){.type = RECORD_CALL, .call = 1}, "", 0, &err), 0);
    record_stream_forget(&s); // it goes out all the same
    assert_null(s.item);
    assert_int_equal(record_writer_fill(&w, message, sizeof message), (size_t)RECORD_HEADER_SIZE);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_whole_body_can_be_taken_out_again_while_nothing_of_it_is_out),
        T(what_is_in_front_and_behind_a_body_that_was_taken_out_goes_out),
        T(a_body_forgets_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
