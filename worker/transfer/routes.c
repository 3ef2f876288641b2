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
    p->said[0].needs = needs;
    p->said[0].needs_len = needs_len(p);
    p->n_needs++;
}

static int say_go(struct participant *p, int witness, struct err *err)
{
    size_t len = needs_len(p);
    p->go_len = all_len(p);
    p->go = xcalloc(1, p->go_len);
    le_put_u32(p->go, (uint32_t)witness);
    for (int i = 0; i < p->config.n_receivers; i++) {
        if (p->said[i].needs_len != len)
            return err_set(err, ERR_PROTO, "%s says nonsense", p->config.names[i]);
        memcpy(p->go + HEAD + (size_t)i * len, p->said[i].needs, len);
    }
    for (int i = 1; i < p->dialog.n; i++)
        dialog_say(&p->dialog, i, DIALOG_GO, p->go, p->go_len);
    return 0;
}

int routes_agree(struct participant *p, const struct mover *m, int witness, struct err *err)
{
    bool center = participant_is_center(p);
    if (participant_is_receiver(p))
        say_needs(p, m);
    while (p->decided == COMMIT_OPEN && (center ? p->n_needs < p->config.n_receivers : !p->go))
        participant_attend(p, NULL, 0, PARTICIPANT_SLICE_MS);
    if (p->decided != COMMIT_OPEN)
        return 0;
    if (center && say_go(p, witness, err) < 0)
        return err->code;
    if (p->go_len != all_len(p))
        return err_set(err, ERR_PROTO, "the first rank of the receivers says nonsense");
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
