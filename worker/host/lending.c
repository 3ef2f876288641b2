// SPDX-License-Identifier: Apache-2.0
#include "worker/host/lending.h"

#include "common/base/err.h"

#include <endian.h>
#include <string.h>

static void put_u32(char *out, uint32_t v)
{
    v = htole32(v);
    memcpy(out, &v, sizeof v);
}

static void put_u64(char *out, uint64_t v)
{
    v = htole64(v);
    memcpy(out, &v, sizeof v);
}

static uint32_t get_u32(const char *in)
{
    uint32_t v;
    memcpy(&v, in, sizeof v);
    return le32toh(v);
}

static uint64_t get_u64(const char *in)
{
    uint64_t v;
    memcpy(&v, in, sizeof v);
    return le64toh(v);
}

void lending_question_write(const struct lending_question *q, char out[LENDING_QUESTION_LEN])
{
    put_u32(out, LENDING_MAGIC);
    put_u32(out + 4, 0);
    put_u64(out + 8, q->id);
    put_u64(out + 16, (uint64_t)q->until);
    memcpy(out + 24, q->key, LENDING_KEY_LEN);
}

int lending_question_read(const char in[LENDING_QUESTION_LEN], struct lending_question *ret)
{
    if (get_u32(in) != LENDING_MAGIC || get_u32(in + 4) != 0)
        return ERR_PROTO;
    ret->id = get_u64(in + 8);
    ret->until = (int64_t)get_u64(in + 16);
    memcpy(ret->key, in + 24, LENDING_KEY_LEN);
    return 0;
}

void lending_answer_write(const struct lending_answer *a, char out[LENDING_ANSWER_LEN])
{
    put_u32(out, LENDING_MAGIC);
    put_u32(out + 4, a->code);
    put_u64(out + 8, a->len);
}

int lending_answer_read(const char in[LENDING_ANSWER_LEN], struct lending_answer *ret)
{
    if (get_u32(in) != LENDING_MAGIC)
        return ERR_PROTO;
    ret->code = get_u32(in + 4);
    ret->len = get_u64(in + 8);
    return 0;
}
