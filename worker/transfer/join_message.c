// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/join_message.h"

#include "common/base/le.h"

#include <string.h>

enum { ID = 36, RANKS = ID + NCCL_ID_SIZE };

size_t join_message_len(int members)
{
    return RANKS + 4 * (size_t)members;
}

void join_message_write(const struct join_message *m, int members, char *out)
{
    le_put_u64(out, m->number);
    le_put_u32(out + 8, (uint32_t)m->n);
    le_put_u32(out + 12, m->pairs);
    le_put_u64(out + 16, m->sizes.round);
    le_put_u64(out + 24, m->sizes.packed);
    le_put_u32(out + 32, m->sizes.runs);
    memcpy(out + ID, m->id.bytes, NCCL_ID_SIZE);
    for (int i = 0; i < members; i++)
        le_put_u32(out + RANKS + 4 * i, (uint32_t)m->ranks[i]);
}

static bool read_ranks(struct join_message *ret, const char *in, int members)
{
    bool valid = true;
    for (int i = 0; i < members; i++) {
        ret->ranks[i] = (int)le_get_u32(in + 4 * i);
        valid = valid && ret->ranks[i] >= -1 && ret->ranks[i] < ret->n;
    }
    return valid;
}

bool join_message_read(struct join_message *ret, const char *in, size_t len, int members, int own, uint64_t most)
{
    if (len != join_message_len(members))
        return false;
    ret->number = le_get_u64(in);
    ret->n = (int)le_get_u32(in + 8);
    ret->pairs = le_get_u32(in + 12);
    ret->sizes = (struct nccl_flow_sizes){le_get_u64(in + 16), le_get_u64(in + 24), le_get_u32(in + 32)};
    memcpy(ret->id.bytes, in + ID, NCCL_ID_SIZE);
    const struct nccl_flow_sizes *sizes = &ret->sizes;
    return read_ranks(ret, in + RANKS, members) && ret->ranks[own] >= 0 && ret->number && ret->n <= members &&
           ret->pairs && ret->pairs <= (uint32_t)members && sizes->runs && sizes->round &&
           sizes->round <= most / ret->pairs;
}
