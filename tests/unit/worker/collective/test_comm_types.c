// SPDX-License-Identifier: Apache-2.0
// Every type of batches in every collective. Over gloo, or over the back end that CADRE_TEST_BACKEND names.
#include "tests/unit/support/team.h"

#include "common/base/mem.h"
#include "common/wire/safetensors.h"
#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 8, WIDEST = 8 }; // elements of a member: whole bytes of any type

static unsigned char byte_of(int member, size_t i)
{
    return (unsigned char)(member * 37 + (int)i * 11 + 1);
}

static bool holds(const unsigned char *data, int member, size_t from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != byte_of(member, from + i))
            return false;
    return true;
}

static int move_type(const struct team_member *m, cadre_comm *c, const char *dtype, size_t len)
{
    int n = m->n, next = (m->index + 1) % n, before = (m->index + n - 1) % n;
    unsigned char mine[TEAM_MAX * EACH * WIDEST], got[TEAM_MAX * EACH * WIDEST + 1];
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = byte_of(m->index, i);
    memset(got, 0xee, sizeof got);
    memcpy(got, mine, len);
    TEAM_CHECK(cadre_broadcast(c, dtype, got, EACH, n - 1) == CADRE_OK && holds(got, n - 1, 0, len) &&
               got[len] == 0xee);
    TEAM_CHECK(cadre_all_gather(c, dtype, mine, got, EACH) == CADRE_OK && got[(size_t)n * len] == 0xee);
    for (int i = 0; i < n; i++)
        TEAM_CHECK(holds(got + (size_t)i * len, i, 0, len));
    TEAM_CHECK(cadre_all_to_all(c, dtype, mine, got, EACH) == CADRE_OK && got[(size_t)n * len] == 0xee);
    for (int i = 0; i < n; i++)
        TEAM_CHECK(holds(got + (size_t)i * len, i, (size_t)m->index * len, len));
    memset(got, 0xee, sizeof got);
    if (m->index % 2)
        TEAM_CHECK(cadre_recv(c, dtype, got, EACH, before) == CADRE_OK);
    TEAM_CHECK(cadre_send(c, dtype, mine, EACH, next) == CADRE_OK);
    if (m->index % 2 == 0)
        TEAM_CHECK(cadre_recv(c, dtype, got, EACH, before) == CADRE_OK);
    TEAM_CHECK(holds(got, before, 0, len) && got[len] == 0xee);
    return 0;
}

static bool reduces_type(enum safetensors_dtype d)
{
    switch (d) {
    case SAFETENSORS_I16:
    case SAFETENSORS_U16:
        return strcmp(team_backend, "gloo") == 0;
    case SAFETENSORS_U8:
    case SAFETENSORS_I8:
    case SAFETENSORS_F16:
    case SAFETENSORS_BF16:
    case SAFETENSORS_I32:
    case SAFETENSORS_U32:
    case SAFETENSORS_F32:
    case SAFETENSORS_F64:
    case SAFETENSORS_I64:
    case SAFETENSORS_U64:
        return true;
    default:
        return false;
    }
}

// A small whole number as an element of that type.
static uint64_t bits_of(enum safetensors_dtype d, int value)
{
    float single = (float)value;
    double wide = value;
    uint32_t bits;
    uint64_t all;
    memcpy(&bits, &single, sizeof bits);
    memcpy(&all, &wide, sizeof all);
    switch (d) {
    case SAFETENSORS_F64:
        return all;
    case SAFETENSORS_F32:
        return bits;
    case SAFETENSORS_BF16:
        return bits >> 16;
    case SAFETENSORS_F16:
        return ((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff);
    default:
        return (uint64_t)value;
    }
}

static void put_all(unsigned char *data, enum safetensors_dtype d, int value, size_t n)
{
    uint64_t bits = bits_of(d, value);
    size_t item = safetensors_dtype_bits(d) / 8;
    for (size_t i = 0; i < n; i++)
        memcpy(data + i * item, &bits, item);
}

static int reduce_type(const struct team_member *m, cadre_comm *c, enum safetensors_dtype d, size_t len)
{
    const char *dtype = safetensors_dtype_name(d);
    unsigned char in[TEAM_MAX * EACH * WIDEST], out[EACH * WIDEST], want[EACH * WIDEST];
    int n = m->n;
    put_all(in, d, m->index + 1, (size_t)n * EACH);
    put_all(want, d, n * (n + 1) / 2, EACH);
    TEAM_CHECK(cadre_all_reduce(c, dtype, in, out, EACH, CADRE_SUM) == CADRE_OK && memcmp(out, want, len) == 0);
    memset(out, 0, sizeof out);
    TEAM_CHECK(cadre_reduce_scatter(c, dtype, in, out, EACH, CADRE_SUM) == CADRE_OK && memcmp(out, want, len) == 0);
    put_all(want, d, n, EACH);
    TEAM_CHECK(cadre_all_reduce(c, dtype, in, out, EACH, CADRE_MAX) == CADRE_OK && memcmp(out, want, len) == 0);
    put_all(want, d, 1, EACH);
    TEAM_CHECK(cadre_all_reduce(c, dtype, in, out, EACH, CADRE_MIN) == CADRE_OK && memcmp(out, want, len) == 0);
    return 0;
}

static int refuse_to_reduce(const struct team_member *m, cadre_comm *c, enum safetensors_dtype d)
{
    unsigned char x[TEAM_MAX * EACH * WIDEST] = {0};
    const char *dtype = safetensors_dtype_name(d);
    TEAM_CHECK(cadre_all_reduce(c, dtype, x, x, EACH, CADRE_MAX) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(strstr(cadre_comm_error(c), "reduce"));
    TEAM_CHECK(cadre_reduce_scatter(c, dtype, x, x, EACH, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    return 0;
}

// Elements that are smaller than a byte.
static int refuse_parts_of_bytes(const struct team_member *m, cadre_comm *c)
{
    static const struct {
        const char *dtype;
        size_t n;
    } parts[] = {{"F4", 3}, {"F6_E2M3", 2}, {"F6_E3M2", 5}};
    unsigned char x[TEAM_MAX * EACH] = {0}, y[TEAM_MAX * EACH];
    int other = (m->index + 1) % m->n;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        TEAM_CHECK(cadre_all_gather(c, parts[i].dtype, x, y, parts[i].n) == CADRE_INVALID_ARGUMENT);
        TEAM_CHECK(strstr(cadre_comm_error(c), "whole bytes: n must be a multiple of 2 for F4, of 4 for F6_E2M3"));
        TEAM_CHECK(cadre_broadcast(c, parts[i].dtype, x, parts[i].n, 0) == CADRE_INVALID_ARGUMENT);
        TEAM_CHECK(cadre_all_to_all(c, parts[i].dtype, x, y, parts[i].n) == CADRE_INVALID_ARGUMENT);
        TEAM_CHECK(cadre_send(c, parts[i].dtype, x, parts[i].n, other) == CADRE_INVALID_ARGUMENT);
        TEAM_CHECK(cadre_recv(c, parts[i].dtype, x, parts[i].n, other) == CADRE_INVALID_ARGUMENT);
    }
    return 0;
}

static int refuse_overlap(const struct team_member *m, cadre_comm *c)
{
    int32_t x[2 * TEAM_MAX] = {0}, *second = x + 1, *last = x + m->n - 1;
    TEAM_CHECK(cadre_all_reduce(c, "I32", x, second, 2, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(strstr(cadre_comm_error(c), "overlap: pass the same memory twice"));
    TEAM_CHECK(cadre_all_gather(c, "I32", last, x, 1) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(strstr(cadre_comm_error(c), "overlap: pass two arrays"));
    TEAM_CHECK(cadre_reduce_scatter(c, "I32", x, last, 1, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_to_all(c, "I32", x, x, 1) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "I32", x, x, 2, CADRE_SUM) == CADRE_OK);
    TEAM_CHECK(cadre_all_gather(c, "I32", x + m->n, x, 1) == CADRE_OK);
    return 0;
}

static int use_types(const struct team_member *m, void *ctx)
{
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    (void)ctx;
    TEAM_CHECK(c);
    int r = refuse_parts_of_bytes(m, c);
    r = r ? r : refuse_overlap(m, c);
    for (enum safetensors_dtype d = 0; r == 0 && d < SAFETENSORS_DTYPE_COUNT; d++) {
        size_t len = (size_t)EACH * safetensors_dtype_bits(d) / 8;
        r = move_type(m, c, safetensors_dtype_name(d), len);
        if (r == 0)
            r = reduces_type(d) ? reduce_type(m, c, d, len) : refuse_to_reduce(m, c, d);
        if (r)
            fprintf(stderr, "member %d: %s: %s\n", m->index, safetensors_dtype_name(d), cadre_comm_error(c));
    }
    cadre_comm_free(c);
    return r;
}

static void every_type_moves_and_numbers_reduce(void **state)
{
    (void)state;
    struct team t;
    team_start(&t, 3, TEAM_LIMIT_MS, use_types, NULL);
    for (int k = 0; k < t.n; k++)
        assert_int_equal(team_wait(&t, k), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_moves_and_numbers_reduce),
    };
    char folder[64];
    team_begin(folder);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
