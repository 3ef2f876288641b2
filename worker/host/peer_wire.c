// SPDX-License-Identifier: Apache-2.0
#include "worker/host/peer_wire.h"

#include "common/base/err.h"
#include "common/base/le.h"
#include "common/base/mem.h"

#include <string.h>

static const uint32_t forms[] = {
    [PEER_BYTES] = PEER_OBJECT_MAGIC, [PEER_VALUES] = UINT32_C(0x31564443), [PEER_HANDLE] = UINT32_C(0x31484443)};

void peer_request_write(const struct peer_request *q, char out[PEER_REQUEST_LEN])
{
    le_put_u32(out, q->magic);
    le_put_u32(out + 4, q->place);
    le_put_u64(out + 8, q->id);
    le_put_u64(out + 16, (uint64_t)q->until);
    memcpy(out + 24, q->key, PEER_KEY_LEN);
}

void peer_request_read(const char in[PEER_REQUEST_LEN], struct peer_request *ret)
{
    ret->magic = le_get_u32(in);
    ret->place = le_get_u32(in + 4);
    ret->id = le_get_u64(in + 8);
    ret->until = (int64_t)le_get_u64(in + 16);
    memcpy(ret->key, in + 24, PEER_KEY_LEN);
}

void peer_answer_write(const struct peer_answer *a, char out[PEER_ANSWER_LEN])
{
    le_put_u32(out, forms[a->form]);
    le_put_u32(out + 4, a->code);
    le_put_u64(out + 8, a->len);
}

int peer_answer_read(const char in[PEER_ANSWER_LEN], struct peer_answer *ret)
{
    size_t form = 0;
    while (form < ARRAY_LEN(forms) && le_get_u32(in) != forms[form])
        form++;
    if (form == ARRAY_LEN(forms))
        return ERR_PROTO;
    ret->form = (enum peer_form)form;
    ret->code = le_get_u32(in + 4);
    ret->len = le_get_u64(in + 8);
    return 0;
}
