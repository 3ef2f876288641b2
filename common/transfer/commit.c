// SPDX-License-Identifier: Apache-2.0
#include "common/transfer/commit.h"

// The center

void commit_center_init(struct commit_center *c, int receivers)
{
    *c = (struct commit_center){.left = receivers};
}

static enum commit_next decide(struct commit_center *c, enum commit_decision decision)
{
    if (c->decision != COMMIT_OPEN)
        return COMMIT_WAIT;
    c->decision = decision;
    return decision == COMMIT_TAKE ? COMMIT_SAY_TAKE : COMMIT_SAY_KEEP;
}

enum commit_next commit_center_ready(struct commit_center *c, bool has_witness)
{
    if (--c->left || c->decision != COMMIT_OPEN)
        return COMMIT_WAIT;
    if (!has_witness)
        return decide(c, COMMIT_TAKE);
    c->proposed = true;
    return COMMIT_PROPOSE;
}

// After the proposal, only the witness knows the decision: it may have told somebody already.
enum commit_next commit_center_failed(struct commit_center *c)
{
    return c->proposed ? COMMIT_WAIT : decide(c, COMMIT_KEEP);
}

enum commit_next commit_center_gives_up(struct commit_center *c)
{
    return decide(c, COMMIT_KEEP);
}

enum commit_next commit_center_answered(struct commit_center *c, enum commit_decision decision)
{
    return c->proposed || decision == COMMIT_KEEP ? decide(c, decision) : COMMIT_WAIT;
}

enum commit_next commit_center_alone(struct commit_center *c)
{
    return decide(c, c->proposed ? COMMIT_TAKE : COMMIT_KEEP);
}

// A receiver

void commit_receiver_init(struct commit_receiver *r, bool has_witness)
{
    *r = (struct commit_receiver){.witness_lost = !has_witness, .certain = true};
}

static void keep(struct commit_receiver *r, bool certain)
{
    if (r->decision != COMMIT_OPEN)
        return;
    r->decision = COMMIT_KEEP;
    r->certain = certain;
}

enum commit_next commit_receiver_pulled(struct commit_receiver *r)
{
    if (r->decision != COMMIT_OPEN)
        return COMMIT_WAIT;
    r->ready = true;
    return COMMIT_SAY_READY;
}

void commit_receiver_told(struct commit_receiver *r, enum commit_decision decision)
{
    if (r->decision == COMMIT_OPEN)
        r->decision = decision;
}

static enum commit_next ask(struct commit_receiver *r)
{
    if (r->decision != COMMIT_OPEN || r->asks)
        return COMMIT_WAIT;
    if (!r->ready) { // the center cannot have decided to take the new weights
        keep(r, true);
        return COMMIT_WAIT;
    }
    if (r->witness_lost) { // then the center decides alone, if it is alive
        if (r->center_lost)
            keep(r, false);
        return COMMIT_WAIT;
    }
    r->asks = true;
    return COMMIT_ASK;
}

enum commit_next commit_receiver_center_lost(struct commit_receiver *r)
{
    r->center_lost = true;
    return ask(r);
}

enum commit_next commit_receiver_witness_lost(struct commit_receiver *r)
{
    r->witness_lost = true;
    if (r->center_lost && r->ready)
        keep(r, false);
    return COMMIT_WAIT;
}

enum commit_next commit_receiver_late(struct commit_receiver *r)
{
    return ask(r);
}

void commit_receiver_gives_up(struct commit_receiver *r)
{
    keep(r, !r->ready);
}

// The witness

static enum commit_decision first(enum commit_decision *decision, enum commit_decision said)
{
    if (*decision == COMMIT_OPEN)
        *decision = said;
    return *decision;
}

enum commit_decision commit_witness_proposed(enum commit_decision *decision)
{
    return first(decision, COMMIT_TAKE);
}

enum commit_decision commit_witness_asked(enum commit_decision *decision)
{
    return first(decision, COMMIT_KEEP);
}
