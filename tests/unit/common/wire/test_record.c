// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static int decode(const void *bytes, struct record_header *ret)
{
    struct err err = ERR_INIT;
    int r = record_header_decode(bytes, ret, &err);
    assert_int_equal(r, err.code);
    assert_true(r == 0 || err.msg[0]);
    return r;
}

static int check(struct record_header h)
{
    char bytes[RECORD_HEADER_SIZE];
    struct record_header back;
    record_header_encode(bytes, &h);
    return decode(bytes, &back);
}

static void a_header_is_sixteen_bytes_little_endian(void **state)
{
    (void)state;
    const struct record_header h = {.len = 0x00010203,
                                    .call = 0xa0b0c0d0,
                                    .rank = 0x11223344,
                                    .type = RECORD_CALL,
                                    .flags = RECORD_MORE | RECORD_PARTS,
                                    .dispatch = RECORD_ALL_TO_ALL,
                                    .execute = RECORD_RANK_ZERO};
    static const uint8_t want[] = {0x03, 0x02, 0x01, 0x00, 0xd0, 0xc0, 0xb0, 0xa0,
                                   0x44, 0x33, 0x22, 0x11, 0x04, 0x03, 0x02, 0x02};
    char bytes[RECORD_HEADER_SIZE];
    struct record_header back;
    record_header_encode(bytes, &h);
    assert_memory_equal(bytes, want, sizeof want);
    assert_int_equal(decode(bytes, &back), 0);
    assert_memory_equal(&back, &h, sizeof h);
}

static void every_type_is_known_by_number_and_name(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        const char *name;
        uint32_t call; // as the specification wants it
    } types[] = {{1, "HELLO", 0},    {2, "WELCOME", 0},  {3, "GOODBYE", 0},   {4, "CALL", 7},     {5, "ARGS", 7},
                 {6, "CANCEL", 7},   {7, "RESULT", 7},   {8, "ERROR", 7},     {9, "HOLD", 7},     {10, "GO", 7},
                 {16, "START", 0},   {17, "STOP", 0},    {18, "STARTED", 0},  {19, "EXITED", 0},  {20, "HEARTBEAT", 0},
                 {21, "OUTPUT", 0},  {22, "PREPARE", 0}, {23, "PREPARED", 0}, {24, "RESTART", 0}, {25, "STOPPED", 0},
                 {26, "REFUSED", 0}, {27, "FREE", 0},    {28, "MEMORY", 0},   {29, "RETURN", 0},  {30, "KILL", 0},
                 {31, "REPORT", 0},  {32, "PLACE", 0},   {33, "ARCHIVE", 0},  {34, "PROGRESS", 0}};
    size_t known = 0;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        assert_string_equal(record_type_name(types[i].type), types[i].name);
        assert_int_equal(check((struct record_header){.type = (uint8_t)types[i].type, .call = types[i].call}), 0);
        if (types[i].type != RECORD_ERROR) // which may also be about the session
            assert_int_equal(check((struct record_header){.type = (uint8_t)types[i].type, .call = !types[i].call}),
                             ERR_PROTO);
    }
    for (unsigned t = 0; t < 256; t++)
        known += check((struct record_header){.type = (uint8_t)t, .call = t >= 4 && t <= 10}) == 0;
    assert_int_equal(known, ARRAY_LEN(types));
    assert_int_equal(check((struct record_header){.type = RECORD_ERROR}), 0);
    assert_string_equal(record_type_name(99), "?");
}

static void what_the_specification_does_not_allow_is_refused(void **state)
{
    (void)state;
    const struct {
        struct record_header h;
        int want;
    } cases[] = {
        {{.type = RECORD_CALL, .call = 1, .len = RECORD_BODY_MAX}, 0},
        {{.type = RECORD_CALL, .call = 1, .len = RECORD_BODY_MAX + 1}, ERR_LIMIT},
        {{.type = RECORD_CALL, .call = 1, .len = UINT32_MAX}, ERR_LIMIT},
        {{.type = RECORD_CALL, .call = 1, .len = 1, .flags = RECORD_MORE}, 0},
        {{.type = RECORD_CALL, .call = 1, .len = 0, .flags = RECORD_MORE}, ERR_PROTO},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_PARTS}, 0},
        {{.type = RECORD_CANCEL, .call = 1, .flags = RECORD_PARTS}, ERR_PROTO},
        {{.type = RECORD_HELLO, .len = 2, .flags = RECORD_PARTS}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = RECORD_QUIET}, 0},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_QUIET}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = RECORD_ORDERED}, 0},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_ORDERED}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = RECORD_REFS}, 0},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_REFS}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = RECORD_SHARED}, 0},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_SHARED}, 0},
        {{.type = RECORD_ERROR, .call = 1, .flags = RECORD_SHARED}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = RECORD_CODE}, 0},
        {{.type = RECORD_RESULT, .call = 1, .flags = RECORD_CODE}, ERR_PROTO},
        {{.type = RECORD_CALL, .call = 1, .flags = 0x80}, ERR_PROTO},
        {{.type = RECORD_RESULT, .call = 1, .dispatch = RECORD_ONE_TO_ALL}, ERR_PROTO},
        {{.type = RECORD_ARGS, .call = 1, .execute = RECORD_ALL}, ERR_PROTO},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(check(cases[i].h), cases[i].want);
}

static void a_call_has_the_modes_of_the_table_or_the_default(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= UINT8_MAX; i++) {
        const struct record_header dispatch = {.type = RECORD_CALL, .call = 1, .dispatch = (uint8_t)i};
        const struct record_header execute = {.type = RECORD_CALL, .call = 1, .execute = (uint8_t)i};
        assert_int_equal(check(dispatch), !i || mode_of(i) ? 0 : ERR_PROTO);
        assert_int_equal(check(execute), !i || mode_execute_of(i) ? 0 : ERR_PROTO);
    }
}

static void a_call_is_a_head_and_arguments(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct record_call call;
    char body[9];
    record_call_prefix(body, 2);
    memcpy(body + 4, "{}", 2);
    memcpy(body + 6, "[1]", 3);
    assert_int_equal(record_call_decode(body, sizeof body, &call, &err), 0);
    assert_int_equal(call.head_len, 2);
    assert_memory_equal(call.head, "{}", 2);
    assert_int_equal(call.args_len, 3);
    assert_memory_equal(call.args, "[1]", 3);
    assert_int_equal(record_call_decode(body, 6, &call, &err), 0); // arguments may be empty, or come as ARGS
    assert_int_equal(call.args_len, 0);
    assert_int_equal(record_call_decode(body, 5, &call, &err), ERR_PROTO);
    assert_int_equal(record_call_decode(body, 3, &call, &err), ERR_PROTO);
    record_call_prefix(body, UINT32_MAX);
    assert_int_equal(record_call_decode(body, sizeof body, &call, &err), ERR_PROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_sixteen_bytes_little_endian),
        cmocka_unit_test(every_type_is_known_by_number_and_name),
        cmocka_unit_test(what_the_specification_does_not_allow_is_refused),
        cmocka_unit_test(a_call_has_the_modes_of_the_table_or_the_default),
        cmocka_unit_test(a_call_is_a_head_and_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
