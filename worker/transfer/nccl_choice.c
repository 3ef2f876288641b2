// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_choice.h"

#include "common/base/mem.h"

#include <string.h>

enum { OUTSIDE = -1, INSIDE = 0 }; // until the members inside get their ranks

static int members_of(const struct nccl_question *q)
{
    return q->n_receivers + q->n_senders;
}

bool nccl_choice_has(const struct nccl_question *q, const struct nccl_choice *c, int receiver, int sender)
{
    return c->n && q->connects[receiver * q->n_senders + sender] && c->ranks[receiver] != OUTSIDE &&
           c->ranks[q->n_receivers + sender] != OUTSIDE;
}

int nccl_choice_pairs(const struct nccl_question *q, const struct nccl_choice *c, int member)
{
    bool receives = member < q->n_receivers;
    int n = 0;
    for (int i = 0; i < (receives ? q->n_senders : q->n_receivers); i++)
        n += receives ? nccl_choice_has(q, c, member, i) : nccl_choice_has(q, c, i, member - q->n_receivers);
    return n;
}

// Keeps the members inside that have a pair with another member inside. Returns how many.
static int keep_pairs(const struct nccl_question *q, struct nccl_choice *c)
{
    int n = members_of(q), kept = 0;
    _cleanup_(free_p) bool *has = xcalloc((size_t)n, sizeof *has);
    c->n = n;
    for (int r = 0; r < q->n_receivers; r++)
        for (int s = 0; s < q->n_senders; s++)
            if (nccl_choice_has(q, c, r, s))
                has[r] = has[q->n_receivers + s] = true;
    for (int i = 0; i < n; i++) {
        c->ranks[i] = has[i] ? INSIDE : OUTSIDE;
        kept += has[i];
    }
    return kept;
}

static void leave_out_shared_gpus(const struct nccl_question *q, int *ranks)
{
    int n = members_of(q);
    _cleanup_(free_p) bool *shares = xcalloc((size_t)n, sizeof *shares);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (ranks[i] != OUTSIDE && ranks[k] != OUTSIDE &&
                memcmp(q->facts[i].gpu, q->facts[k].gpu, DEVICE_UUID_SIZE) == 0)
                shares[i] = shares[k] = true;
    for (int i = 0; i < n; i++)
        if (shares[i])
            ranks[i] = OUTSIDE;
}

static void compare_versions(const struct nccl_question *q, struct nccl_choice *c)
{
    c->from = c->differs = -1;
    for (int i = 0; i < members_of(q) && c->differs < 0; i++) {
        if (c->ranks[i] == OUTSIDE)
            continue;
        c->from = c->from < 0 ? i : c->from;
        c->differs = q->facts[i].version == q->facts[c->from].version ? -1 : i;
    }
}

// Returns the communicator that all members inside have kept, if none of its members is missing now. 0 = there is none.
static uint64_t find_kept(const struct nccl_question *q, const struct nccl_choice *c)
{
    const struct nccl_fact *first = &q->facts[c->from];
    uint32_t n = 0;
    for (int i = 0; i < members_of(q); i++) {
        bool has = q->facts[i].version && q->facts[i].number == first->number;
        if (c->ranks[i] != OUTSIDE && !has)
            return 0;
        n += has;
    }
    return n == first->n ? first->number : 0;
}

static void give_ranks(const struct nccl_question *q, struct nccl_choice *c)
{
    int next = 0;
    for (int i = 0; i < members_of(q); i++)
        if (c->ranks[i] != OUTSIDE)
            c->ranks[i] = c->number ? (int)q->facts[i].rank : next++;
}

void nccl_choose(const struct nccl_question *q, int *ranks, struct nccl_choice *ret)
{
    *ret = (struct nccl_choice){.ranks = ranks, .differs = -1};
    for (int i = 0; i < members_of(q); i++)
        ranks[i] = q->facts[0].version && q->facts[i].version ? INSIDE : OUTSIDE; // the center makes the unique id
    if (keep_pairs(q, ret) == 0) {
        ret->n = 0;
        return;
    }
    leave_out_shared_gpus(q, ranks);
    ret->n = keep_pairs(q, ret);
    if (!ret->n)
        return;
    compare_versions(q, ret);
    if (ret->differs >= 0) {
        ret->n = 0;
        return;
    }
    ret->number = find_kept(q, ret);
    ret->size = ret->number ? (int)q->facts[ret->from].n : ret->n;
    give_ranks(q, ret);
}
