// SPDX-License-Identifier: Apache-2.0
#include "worker/host/lending.h"

#include "common/base/err.h"
#include "common/base/le.h"
#include "common/base/mem.h"

#include <string.h>

static const uint32_t forms[] = {
    [LENDING_BYTES] = LENDING_MAGIC, [LENDING_VALUES] = UINT32_C(0x31564443), [LENDING_HANDLE] = UINT32_C(0x31484443)};

void lending_question_write(const struct lending_question *q, char out[LENDING_QUESTION_LEN])
{
    le_put_u32(out, LENDING_MAGIC);
    le_put_u32(out + 4, q->place);
    le_put_u64(out + 8, q->id);
    le_put_u64(out + 16, (uint64_t)q->until);
    memcpy(out + 24, q->key, LENDING_KEY_LEN);
}

int lending_question_read(const char in[LENDING_QUESTION_LEN], struct lending_question *ret)
{
    if (le_get_u32(in) != LENDING_MAGIC)
        return ERR_PROTO;
    ret->place = le_get_u32(in + 4);
    ret->id = le_get_u64(in + 8);
    ret->until = (int64_t)le_get_u64(in + 16);
    memcpy(ret->key, in + 24, LENDING_KEY_LEN);
    return 0;
}

void lending_guest_write(const struct lending_guest *g, char out[LENDING_QUESTION_LEN])
{
    le_put_u32(out, LENDING_GUEST_MAGIC);
    le_put_u32(out + 4, g->index);
    le_put_u64(out + 8, g->id);
    le_put_u64(out + 16, (uint64_t)g->until);
    memcpy(out + 24, g->key, LENDING_KEY_LEN);
}

int lending_guest_read(const char in[LENDING_QUESTION_LEN], struct lending_guest *ret)
{
    if (le_get_u32(in) != LENDING_GUEST_MAGIC)
        return ERR_PROTO;
    ret->index = le_get_u32(in + 4);
    ret->id = le_get_u64(in + 8);
    ret->until = (int64_t)le_get_u64(in + 16);
    memcpy(ret->key, in + 24, LENDING_KEY_LEN);
    return 0;
}

void lending_answer_write(const struct lending_answer *a, char out[LENDING_ANSWER_LEN])
{
    le_put_u32(out, forms[a->form]);
    le_put_u32(out + 4, a->code);
    le_put_u64(out + 8, a->len);
}

int lending_answer_read(const char in[LENDING_ANSWER_LEN], struct lending_answer *ret)
{
    size_t form = 0;
    while (form < ARRAY_LEN(forms) && le_get_u32(in) != forms[form])
        form++;
    if (form == ARRAY_LEN(forms))
        return ERR_PROTO;
    ret->form = (enum lending_form)form;
    ret->code = le_get_u32(in + 4);
    ret->len = le_get_u64(in + 8);
    return 0;
}
