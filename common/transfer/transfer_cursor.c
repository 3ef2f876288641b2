// SPDX-License-Identifier: Apache-2.0
#include "common/transfer/transfer_cursor.h"

#include "common/base/mem.h"

static void block_of(const struct transfer_side *side, size_t tensor, uint32_t rank, struct shard *ret)
{
    const struct transfer_tensor *t = &side->tensors[tensor];
    shard_of_rank(side->mesh, t->split, rank, t->shape, t->n_dims, ret);
}

static void enter(struct transfer_cursor *c)
{
    const struct transfer_piece *p = &c->pieces[c->i];
    block_of(c->sides[0], p->source, c->ranks[0], &c->blocks[0]);
    block_of(c->sides[1], p->destination, c->ranks[1], &c->blocks[1]);
    (void)shard_runs_first(&c->runs, &p->part, safetensors_dtype_bits(c->sides[0]->tensors[p->source].dtype) / 8,
                           &c->blocks[0], &c->blocks[1]);
}

void transfer_cursor_init(struct transfer_cursor *c, const struct transfer_side *from, const struct transfer_side *to,
                          const struct transfer_plan *plan, uint32_t sender, uint32_t receiver)
{
    size_t n;
    const struct transfer_piece *sends = transfer_plan_sends(plan, sender, receiver, &n);
    uint32_t senders = transfer_side_world(from);
    bool relays = sender >= senders;
    *c = (struct transfer_cursor){.sides = {relays ? to : from, to},
                                  .ranks = {relays ? sender - senders : sender, receiver},
                                  .pieces = sends,
                                  .n = n,
                                  .until = n};
    for (size_t i = 0; i < n; i++)
        c->left += sends[i].bytes;
    if (n)
        enter(c);
}

bool transfer_cursor_next(struct transfer_cursor *c, uint64_t max, struct transfer_chunk *ret)
{
    if (!c->left || c->i >= c->until)
        return false;
    const struct transfer_piece *p = &c->pieces[c->i];
    *ret = (struct transfer_chunk){p->source, p->destination, c->runs.from + c->done, c->runs.to + c->done,
                                   MIN(c->runs.len - c->done, max)};
    c->left -= ret->len;
    c->done += ret->len;
    if (c->done < c->runs.len)
        return true;
    c->done = 0;
    if (!shard_runs_next(&c->runs) && ++c->i < c->n)
        enter(c);
    return true;
}
