// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/routes.h"

#include "common/base/le.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 4 };

static size_t needs_len(const struct participant *p)
{
    return (size_t)p->config.n_senders + WINDOW_PLACE_SIZE;
}

static size_t all_len(const struct participant *p)
{
    return HEAD + (size_t)p->config.n_receivers * needs_len(p);
}

static void say_needs(struct participant *p, const struct mover *m)
{
    struct window_place place;
    char *needs = xcalloc(needs_len(p), 1);
    for (int i = 0; i < p->config.n_senders; i++)
        needs[i] = (char)mover_way(m, (uint32_t)i);
    mover_show(m, &place);
    window_place_write(&place, needs + p->config.n_senders);
    if (!participant_is_center(p)) {
        dialog_say(&p->dialog, 0, DIALOG_NEEDS, needs, needs_len(p));
        free(needs);
        return;
    }
    p->members[0].needs = needs;
    p->members[0].needs_len = needs_len(p);
    p->n_needs++;
}

static int check_needs(const struct participant *p, struct err *err)
{
    for (int i = 0; i < p->config.n_receivers; i++)
        if (p->members[i].needs_len != needs_len(p))
            return err_set(err, ERR_PROTO, "%s says nonsense", p->config.names[i]);
    return 0;
}

// Pairs that need a connection may use NCCL, if all that are to join can.
static void join_by_nccl(struct participant *p, struct nccl_join *j)
{
    int n_senders = p->config.n_senders;
    if (!p->n_gpu)
        return;
    _cleanup_(free_p) bool *connects = xcalloc((size_t)p->config.n_receivers * (size_t)n_senders, sizeof *connects);
    for (int i = 0; i < p->config.n_receivers; i++)
        for (int k = 0; k < n_senders; k++)
            connects[i * n_senders + k] = p->members[i].needs[k] == MOVER_CONNECTS;
    if (!nccl_join_ask(j, p, connects))
        return;
    while (p->decided == COMMIT_OPEN && !nccl_join_is_answered(j, p)) {
        nccl_join_step(j, p);
        participant_attend(p, NULL, 0, nccl_join_wait_ms(j));
    }
}

static void say_go(struct participant *p, const struct nccl_join *j, int witness)
{
    size_t len = needs_len(p);
    p->go_len = all_len(p);
    p->go = xcalloc(1, p->go_len);
    le_put_u32(p->go, (uint32_t)witness);
    for (int i = 0; i < p->config.n_receivers; i++) {
        char *needs = p->go + HEAD + (size_t)i * len;
        memcpy(needs, p->members[i].needs, len);
        for (int k = 0; j->n_asked && k < p->config.n_senders; k++)
            if (needs[k] == MOVER_CONNECTS && nccl_join_allows(j, p, i, p->config.n_receivers + k))
                needs[k] = MOVER_USES_NCCL;
    }
    for (int i = 1; i < p->dialog.n; i++)
        dialog_say(&p->dialog, i, DIALOG_GO, p->go, p->go_len);
}

static uint32_t count_nccl(const struct participant *p)
{
    bool receives = participant_is_receiver(p);
    int own = receives ? p->config.index : p->config.index - p->config.n_receivers;
    uint32_t n = 0;
    for (int i = 0; i < (receives ? p->config.n_senders : p->config.n_receivers); i++)
        n += routes_way(p, receives ? own : i, receives ? i : own) == MOVER_USES_NCCL;
    return n;
}

int routes_agree(struct participant *p, const struct mover *m, struct nccl_join *j, int witness, struct err *err)
{
    bool center = participant_is_center(p);
    if (participant_is_receiver(p))
        say_needs(p, m);
    while (p->decided == COMMIT_OPEN && (center ? p->n_needs < p->config.n_receivers : !p->go)) {
        participant_attend(p, NULL, 0, nccl_join_wait_ms(j));
        nccl_join_step(j, p);
    }
    if (center && p->decided == COMMIT_OPEN && check_needs(p, err) < 0)
        return err->code;
    if (center && p->decided == COMMIT_OPEN)
        join_by_nccl(p, j);
    if (p->decided != COMMIT_OPEN)
        return 0;
    if (center)
        say_go(p, j, witness);
    uint32_t pairs = p->go_len == all_len(p) ? count_nccl(p) : 0;
    if (p->go_len != all_len(p) || (pairs && pairs != nccl_join_pairs(j)))
        return err_set(err, ERR_PROTO, "the first rank of the receivers says nonsense");
    nccl_join_end(j, p, pairs > 0);
    return 0;
}

int routes_witness(const struct participant *p)
{
    return (int)le_get_u32(p->go);
}

static const char *needs_of(const struct participant *p, int receiver)
{
    return p->go + HEAD + (size_t)receiver * needs_len(p);
}

enum mover_way routes_way(const struct participant *p, int receiver, int sender)
{
    return (enum mover_way)needs_of(p, receiver)[sender];
}

void routes_place(const struct participant *p, int receiver, struct window_place *ret)
{
    window_place_read(needs_of(p, receiver) + p->config.n_senders, ret);
}

int routes_connected(const struct participant *p, int sender, int receiver, int *ret_before)
{
    int n = 0;
    *ret_before = 0;
    for (int i = 0; i < p->config.n_receivers; i++) {
        bool connects = routes_way(p, i, sender) == MOVER_CONNECTS;
        *ret_before += connects && i < receiver;
        n += connects;
    }
    return n;
}
