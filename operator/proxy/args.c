// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/args.h"

#include "common/base/mem.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/split_stream.h"
#include "operator/proxy/tenant.h"

#include <stdlib.h>
#include <string.h>

#define FETCH_MAX ((size_t)1 << 20) // most bytes that are copied in a turn of the loop
// Charge for a reference to shared memory, and for the bytes between it and the next one.
#define REFERENCE_COST ((size_t)256)

// The pieces that follow args.body, beginning with the first one in shared memory.
struct args_rest {
    struct record_part *parts; // parts outside of shared memory belong to the call
    size_t n, size, first;
    size_t own, charged; // bytes of these parts; charge for the references
    bool complete;
    struct quota *quota;
};

static void rest_free(struct args_rest *rest)
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

static void charge(struct call *c, size_t bytes)
{
    c->session->waiting += bytes - c->args.charged;
    c->args.charged = bytes;
}

struct call_body args_body(const struct call *c)
{
    const struct args_rest *rest = c->args.rest;
    struct blob *b = c->args.body;
    struct call_body body = {b->data + c->args.before, b->len - c->args.before - c->args.behind, b};
    if (!rest)
        return body;
    const struct record_part *part = &rest->parts[rest->first];
    body.next = part->blob->data + part->offset;
    body.next_len = part->len;
    body.next_last = rest->complete && rest->n - rest->first == 1;
    return body;
}

bool args_parked(const struct call *c)
{
    return c->args.partial;
}

void args_wait(struct call *c)
{
    charge(c, args_body(c).len);
}

bool args_keep(struct call *c, const struct call_body *body)
{
    struct blob *b = c->args.body = body_keep(body, c->quota);
    if (body->blob && b) {
        c->args.before = (size_t)(body->data - b->data);
        c->args.behind = b->len - c->args.before - body->len;
    }
    return b != NULL;
}

// The arguments are parked, and all of them have arrived.
static bool is_complete(const struct call *c)
{
    return c->args.rest && c->args.rest->complete;
}

bool args_missing(const struct call *c)
{
    return c->state == CALL_STREAMING || (c->args.partial && !c->args.paused && !is_complete(c));
}

// This record goes into the queue however full the queue is: nothing else would make the client go on.
void args_pause(struct call *c, bool pause)
{
    struct peer *p = &c->session->peer;
    const struct record_header h = {.type = pause ? RECORD_HOLD : RECORD_GO, .call = c->req.id, .rank = RECORD_GROUP};
    if (!c->args.partial || c->args.paused == pause || is_complete(c) || !p->out || p->close_code)
        return;
    c->args.paused = pause;
    record_writer_insist(p->out, &h);
    peer_changed(p);
}

bool args_park(struct call *c, const struct call_body *first)
{
    struct blob *b = first->blob;
    bool all = b && !b->area && first->data == b->data && first->len == b->len;
    c->args.body = all ? body_keep(first, c->quota) : blob_copy(first->data, first->len, c->quota);
    if (!c->args.body)
        return false;
    c->args.partial = true;
    args_pause(c, true);
    return true;
}

static size_t held_bytes(const struct call *c)
{
    return c->args.body->len + (c->args.rest ? c->args.rest->own + c->args.rest->charged : 0);
}

static int check_length(const struct call *c, size_t more, struct err *err)
{
    size_t most = c->router->config.max_whole, have = c->args.body->len + (c->args.rest ? c->args.rest->own : 0);
    if (!most || more <= most - MIN(have, most))
        return 0;
    if (c->args.paused)
        return err_set(err, ERR_LIMIT,
                       "%s() of %s cannot be sent yet, and the client ignored HOLD: at most %zu bytes may wait here; "
                       "stop at HOLD, or call when the group is ready",
                       c->req.method, c->group->key, most);
    return err_set(
        err, ERR_LIMIT,
        "%s(): the arguments are longer than %zu bytes, and the proxy needs all of them at once, for example "
        "JSON that it must split; send a batch whose tensors are sorted widest first",
        c->req.method, most);
}

static int no_room(const struct call *c, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this client wait already", c->req.method,
                   c->group->key);
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

// The rest

static struct record_part *add_part(struct args_rest *rest, const struct record_part *part)
{
    MEM_GROW(rest->parts, rest->n, rest->size);
    rest->parts[rest->n] = *part;
    return &rest->parts[rest->n++];
}

static int refer(struct call *c, const struct call_body *piece, struct err *err)
{
    struct args_rest *rest = c->args.rest;
    if (!quota_charge(c->quota, REFERENCE_COST))
        return no_room(c, err);
    rest->charged += REFERENCE_COST;
    const struct record_part part = body_part(piece, blob_ref(piece->blob));
    add_part(rest, &part);
    return 0;
}

// Keeps bytes between references, and bytes that follow a body with other users. They become one blob, in however many
// pieces they arrive.
static int keep(struct call *c, const struct call_body *piece, struct err *err)
{
    struct args_rest *rest = c->args.rest;
    struct record_part *at = rest->n > rest->first ? &rest->parts[rest->n - 1] : NULL;
    if (!at || at->blob->area)
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
    if (!piece->len)
        return 0;
    if (!shared && check_length(c, piece->len, err) < 0)
        return err->code;
    if (!shared && !c->args.rest && c->args.body->refs == 1)
        return append(c, c->args.body, piece->data, piece->len, err);
    if (!c->args.rest) {
        c->args.rest = xcalloc(1, sizeof *c->args.rest);
        c->args.rest->quota = quota_ref(c->quota);
    }
    return shared ? refer(c, piece, err) : keep(c, piece, err);
}

static int add(struct call *c, const struct call_body *piece, bool last, struct err *err)
{
    if (take(c, piece, err) < 0)
        return err->code;
    charge(c, held_bytes(c));
    if (last) {
        c->args.paused = false;
        dispatch_plan_free(TAKE_PTR(c->plan));
        args_split_by(c, NULL);
        if (c->args.rest)
            c->args.rest->complete = true;
        else
            c->args.partial = false; // the call waits like any other
    }
    if (last || (!c->args.paused && (c->args.rest || c->args.body->len >= c->args.want)))
        tenant_look_again(c->tenant, c->group);
    return 0;
}

// Copies some bytes of the first part behind args.body.
static int fetch_part(struct call *c, struct err *err)
{
    struct args_rest *rest = c->args.rest;
    struct record_part *part = &rest->parts[rest->first];
    size_t n = MIN(MIN(part->len, c->args.want - c->args.body->len), FETCH_MAX);
    int r = part->blob->area ? check_length(c, n, err) : 0;
    if (r == 0)
        r = append(c, c->args.body, part->blob->data + part->offset, n, err);
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

void args_want(struct call *c, size_t bytes)
{
    c->args.want = bytes;
}

int args_fetch(struct call *c, struct err *err)
{
    size_t before = c->args.body->len;
    int r = 0;
    while (c->args.rest && c->args.body->len < c->args.want && c->args.body->len - before < FETCH_MAX && r == 0) {
        r = fetch_part(c, err);
        if (c->args.rest->first == c->args.rest->n) {
            c->args.partial = !c->args.rest->complete;
            rest_free(TAKE_PTR(c->args.rest));
        }
    }
    charge(c, held_bytes(c));
    if (r < 0 || !c->args.partial || c->args.body->len >= c->args.want)
        return r < 0 ? r : 1;
    if (c->args.rest)
        tenant_look_again(c->tenant, c->group);
    else
        args_pause(c, false);
    return 0;
}

// Passing

static void tell(struct call *c, bool pause)
{
    if (peer_pause(&c->session->peer, pause, c->req.id, RECORD_GROUP))
        c->args.paused = pause;
}

// The client must be read until the row is complete, however long the row is.
static void count_repeated(struct call *c)
{
    size_t bytes = c->args.split ? split_stream_waits(c->args.split) : 0;
    c->session->parked += bytes - c->args.repeated;
    c->args.repeated = bytes;
}

static int send_piece(struct call *c, const struct call_body *piece, struct err *err)
{
    int r = 0;
    if (!piece->len)
        return 0;
    struct blob *kept = body_keep_piece(piece, c->quota);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s(): no room for more of its arguments", c->req.method);
    const struct record_part part = body_part(piece, kept);
    if (c->args.split)
        r = split_stream_take(c->args.split, c, &part, err);
    count_repeated(c);
    for (uint32_t i = 0; i < c->n && !c->args.split && r == 0; i++)
        r = call_rank_send(&c->ranks[i], &part, err);
    blob_unref(kept);
    return r;
}

// No more arguments are awaited: all have arrived, or the call is about to end. Nothing depends on this GO.
static void end(struct call *c)
{
    if (c->args.paused)
        tell(c, false);
    c->args.paused = false;
    if (c->state == CALL_STREAMING)
        call_become(c, CALL_RUNNING);
}

static int pass(struct call *c, const struct call_body *piece, bool last, struct err *err)
{
    if (send_piece(c, piece, err) < 0 ||
        (last && c->args.split && split_stream_end(c->args.split, c->req.method, err) < 0))
        return err->code;
    if (!last)
        return 0;
    for (uint32_t i = 0; i < c->n; i++)
        call_rank_send_end(&c->ranks[i]);
    end(c);
    args_split_by(c, NULL);
    return 0;
}

int args_piece(struct call *c, const struct call_body *piece, bool last, struct err *err)
{
    if (c->state == CALL_STREAMING)
        return pass(c, piece, last, err);
    return c->args.partial ? add(c, piece, last, err) : 0;
}

void args_split_by(struct call *c, struct split_stream *s)
{
    split_stream_free(c->args.split);
    c->args.split = s;
    count_repeated(c);
}

const struct split_stream *args_split(const struct call *c)
{
    return c->args.split;
}

int args_pass_parked(struct call *c, struct err *err)
{
    struct args_rest *rest = TAKE_PTR(c->args.rest);
    int r = 0;
    while (rest && rest->first < rest->n && r == 0) {
        const struct record_part part = rest->parts[rest->first++];
        const struct call_body piece = {part.blob->data + part.offset, part.len, part.blob};
        r = pass(c, &piece, rest->complete && rest->first == rest->n, err);
        blob_unref(part.blob);
    }
    rest_free(rest);
    return r;
}

static size_t waiting(const struct call *c)
{
    size_t most = 0;
    for (uint32_t i = 0; i < c->n; i++)
        most = MAX(most, call_rank_waits(&c->ranks[i]));
    return most;
}

bool args_flow(struct call *c)
{
    if (c->state == CALL_STREAMING && call_flow_changes(c, c->args.paused, waiting(c)))
        tell(c, !c->args.paused);
    return c->args.paused;
}

// Ends

void args_abort(struct call *c)
{
    if (c->state == CALL_STREAMING)
        stats_end(&c->stat); // before call_rank_drop(): ranks that have a part of the call do not answer it
    for (uint32_t i = 0; i < c->n && c->state == CALL_STREAMING; i++)
        call_rank_drop(&c->ranks[i]);
    end(c);
}

struct call_body args_take(struct call *c)
{
    struct call_body body = args_body(c);
    charge(c, 0);
    c->args.partial = false;
    c->args.body = NULL;
    c->args.before = c->args.behind = 0;
    return body;
}

void args_done(struct call *c)
{
    charge(c, 0);
    blob_unref(TAKE_PTR(c->args.body));
    rest_free(TAKE_PTR(c->args.rest));
    args_split_by(c, NULL);
}
