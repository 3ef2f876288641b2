// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stall.h"

#include "operator/proxy/cut.h"
#include "operator/proxy/deal.h"

#include <string.h>

// Told however full the queue is: nothing else would make the sender go on.
void stall_hold(struct call *c, bool hold)
{
    struct peer *p = &c->session->peer;
    const struct record_header h = {.type = hold ? RECORD_HOLD : RECORD_GO, .call = c->caller_id, .rank = RECORD_GROUP};
    if (c->args_held == hold || !p->out || p->close_code)
        return;
    c->args_held = hold;
    record_writer_insist(p->out, &h);
    peer_changed(p);
}

struct blob *stall_begin(struct call *c, const struct call_body *first)
{
    struct blob *kept = blob_copy(first->data, first->len, c->quota);
    if (!kept)
        return NULL;
    c->stalls = true;
    stall_hold(c, true);
    return kept;
}

static void refuse(struct call *c)
{
    size_t most = c->router->config.max_whole;
    if (c->args_held)
        call_refuse(c, ERR_LIMIT,
                    "%s() of %s cannot be sent yet, and its arguments went on after a HOLD: no more than %zu bytes may "
                    "wait here; stop at HOLD, or call when the group is ready",
                    c->method, c->group->key, most);
    else
        call_refuse(c, ERR_LIMIT,
                    "%s(): the arguments are longer than the %zu bytes that are taken of a call that has to be here "
                    "whole, such as JSON to be split; send a batch, whose tensors lie widest first",
                    c->method, most);
}

// It may not have to wait any more.
static void look_again(struct call *c)
{
    if (list_empty(&c->group->stale))
        list_append(&c->router->stale, &c->group->stale);
}

void stall_add(struct call *c, const struct call_body *piece, bool last)
{
    struct blob *b = c->body;
    size_t most = c->router->config.max_whole;
    c->stat.bytes_in += piece->len;
    if (most && piece->len > most - MIN(b->len, most)) {
        refuse(c);
        return;
    }
    if (!blob_reserve(b, piece->len)) {
        call_refuse(c, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this controller do already", c->method,
                    c->group->key);
        return;
    }
    if (piece->len)
        memcpy(b->data + b->len, piece->data, piece->len);
    b->len += piece->len;
    call_waits(c, b->len);
    if (last) { // a call that waits like any other
        c->stalls = c->args_held = false;
        deal_free(c);
        cut_free(c);
    }
    if (last || (!c->args_held && b->len >= c->want))
        look_again(c);
}
