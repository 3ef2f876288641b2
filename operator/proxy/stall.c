// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stall.h"

#include "common/base/mem.h"
#include "operator/proxy/cut.h"
#include "operator/proxy/deal.h"
#include "operator/proxy/stream.h"

#include <stdlib.h>
#include <string.h>

#define REFERENCE_COST ((size_t)256) // what one to shared memory is charged, and what comes between two of them

// What follows call->body, from the first piece on that lies in shared memory.
struct stall_rest {
    struct record_part *parts; // those that are not in shared memory are the call's own
    size_t n, size, first;
    size_t own, charged; // bytes of the own ones; for the references
    bool complete;
    struct quota *quota;
};

static struct stall_rest *rest_new(struct quota *quota)
{
    struct stall_rest *rest = xcalloc(1, sizeof *rest);
    rest->quota = quota_ref(quota);
    return rest;
}

static void rest_free(struct stall_rest *rest)
{
    if (!rest)
        return;
    while (rest->first < rest->n)
        blob_unref(rest->parts[rest->first++].blob);
    quota_refund(rest->quota, rest->charged);
    quota_unref(rest->quota);
    free(rest->parts);
    free(rest);
}

void stall_free(struct call *c)
{
    rest_free(TAKE_PTR(c->rest));
}

// Told however full the queue is: nothing else would make the sender go on.
void stall_hold(struct call *c, bool hold)
{
    struct peer *p = &c->session->peer;
    const struct record_header h = {.type = hold ? RECORD_HOLD : RECORD_GO, .call = c->req.id, .rank = RECORD_GROUP};
    if (c->args_held == hold || stall_complete(c) || !p->out || p->close_code)
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

bool stall_complete(const struct call *c)
{
    return c->rest && c->rest->complete;
}

static size_t held_bytes(const struct call *c)
{
    return c->body->len + (c->rest ? c->rest->own + c->rest->charged : 0);
}

static void too_long(const struct call *c, struct err *err)
{
    size_t most = c->router->config.max_whole;
    if (c->args_held)
        err_set(err, ERR_LIMIT,
                "%s() of %s cannot be sent yet, and its arguments went on after a HOLD: no more than %zu bytes may "
                "wait here; stop at HOLD, or call when the group is ready",
                c->req.method, c->group->key, most);
    else
        err_set(err, ERR_LIMIT,
                "%s(): the arguments are longer than the %zu bytes that are taken of a call that has to be here "
                "whole, such as JSON to be split; send a batch, whose tensors lie widest first",
                c->req.method, most);
}

static int check_length(const struct call *c, size_t more, struct err *err)
{
    size_t most = c->router->config.max_whole, have = c->body->len + (c->rest ? c->rest->own : 0);
    if (most && more > most - MIN(have, most))
        too_long(c, err);
    return err->code;
}

static int no_room(const struct call *c, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this controller do already",
                   c->req.method, c->group->key);
}

static int append(const struct call *c, struct blob *b, const char *data, size_t len, struct err *err)
{
    if (!blob_reserve(b, len))
        return no_room(c, err);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

// It may not have to wait any more.
static void look_again(struct call *c)
{
    if (list_empty(&c->group->stale))
        list_append(&c->router->stale, &c->group->stale);
}

// The rest

static struct record_part *add_part(struct stall_rest *rest, const struct record_part *part)
{
    if (rest->n == rest->size) {
        rest->size = MAX(rest->size * 2, (size_t)4);
        rest->parts = xrealloc(rest->parts, rest->size, sizeof *rest->parts);
    }
    rest->parts[rest->n] = *part;
    return &rest->parts[rest->n++];
}

static int refer(struct call *c, const struct call_body *piece, struct err *err)
{
    struct stall_rest *rest = c->rest;
    if (!quota_charge(c->quota, REFERENCE_COST))
        return no_room(c, err);
    rest->charged += REFERENCE_COST;
    add_part(rest, &(struct record_part){blob_ref(piece->blob), (size_t)(piece->data - piece->blob->data), piece->len});
    return 0;
}

// What comes between references: one blob, in however many pieces.
static int keep(struct call *c, const struct call_body *piece, struct err *err)
{
    struct stall_rest *rest = c->rest;
    struct record_part *at = &rest->parts[rest->n - 1];
    if (at->blob->area)
        at = add_part(rest, &(struct record_part){.blob = blob_new(0, c->quota)});
    int r = append(c, at->blob, piece->data, piece->len, err);
    if (r == 0) {
        at->len += piece->len;
        rest->own += piece->len;
    }
    return r;
}

static int take(struct call *c, const struct call_body *piece, struct err *err)
{
    bool shared = piece->blob && piece->blob->area;
    if (!shared && check_length(c, piece->len, err) < 0)
        return err->code;
    if (!shared && !c->rest)
        return append(c, c->body, piece->data, piece->len, err);
    if (!c->rest)
        c->rest = rest_new(c->quota);
    if (shared)
        return refer(c, piece, err);
    return piece->len ? keep(c, piece, err) : 0;
}

void stall_add(struct call *c, const struct call_body *piece, bool last)
{
    struct err err = ERR_INIT;
    if (take(c, piece, &err) < 0) {
        call_refuse(c, err.code, "%s", err.msg);
        return;
    }
    call_waits(c, held_bytes(c));
    if (last) {
        c->args_held = false;
        deal_free(TAKE_PTR(c->deal));
        cut_free(TAKE_PTR(c->cut));
        if (c->rest)
            c->rest->complete = true;
        else
            c->stalls = false; // a call that waits like any other
    }
    if (last || (!c->args_held && (c->rest || c->body->len >= c->want)))
        look_again(c);
}

// Some bytes of its first part come behind call->body.
static int fetch_part(struct call *c, struct err *err)
{
    struct stall_rest *rest = c->rest;
    struct record_part *part = &rest->parts[rest->first];
    size_t n = MIN(part->len, c->want - c->body->len);
    int r = part->blob->area ? check_length(c, n, err) : 0;
    if (r == 0)
        r = append(c, c->body, part->blob->data + part->offset, n, err);
    if (r < 0)
        return r;
    rest->own -= part->blob->area ? 0 : n;
    part->offset += n;
    part->len -= n;
    if (!part->len) {
        blob_unref(part->blob);
        rest->first++;
    }
    return 0;
}

int stall_fetch(struct call *c, struct err *err)
{
    int r = 0;
    while (c->rest && c->body->len < c->want && r == 0) {
        r = fetch_part(c, err);
        if (c->rest->first == c->rest->n) {
            c->stalls = !c->rest->complete;
            stall_free(c);
        }
    }
    call_waits(c, held_bytes(c));
    return r;
}

const char *stall_peek(const struct call *c, size_t *ret_len, bool *ret_last)
{
    const struct stall_rest *rest = c->rest;
    if (!rest)
        return NULL;
    const struct record_part *part = &rest->parts[rest->first];
    *ret_len = part->len;
    *ret_last = rest->complete && rest->n - rest->first == 1;
    return part->blob->data + part->offset;
}

void stall_pass(struct call *c)
{
    struct stall_rest *rest = TAKE_PTR(c->rest);
    bool goes_on = true;
    while (rest && rest->first < rest->n && goes_on) {
        const struct record_part part = rest->parts[rest->first++];
        const struct call_body piece = {part.blob->data + part.offset, part.len, part.blob};
        goes_on = stream_args(c, &piece, rest->complete && rest->first == rest->n);
        blob_unref(part.blob);
    }
    rest_free(rest);
}
