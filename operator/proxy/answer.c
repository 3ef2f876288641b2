// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/answer.h"

#include "operator/proxy/dispatch_plan.h"

#include <string.h>

uint32_t answer_count(const struct call *c)
{
    return c->plan ? c->plan->d.n_keep : c->n;
}

const struct call_rank *answer_rank(const struct call *c, uint32_t i)
{
    return &c->ranks[c->plan ? c->plan->d.keep[i] - c->req.first : i];
}

int answer_no_room(const struct call *c, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s ran, but all results together exceed the memory of this client",
                   c->req.method, c->group->key);
}

// Bytes that wait for a client are charged to that client. Otherwise they would fill up the worker that made them, and
// so affect other clients.
void answer_parks(struct call *c, size_t bytes)
{
    c->session->parked += bytes - c->answer.parked;
    c->answer.parked = bytes;
}

static bool keep(struct call_rank *rank, const struct call_body *body)
{
    struct call *c = rank->call;
    // Somebody reads the result later, and bytes in a worker's memory may change until then.
    bool shaky = body->blob && body->blob->area && ((c->plan && c->plan->d.join) || c->req.keep);
    answer_parks(c, c->answer.parked + body->len);
    if (body->blob && !shaky) {
        if (!blob_recharge(body->blob, c->quota))
            return false;
        rank->result.blob = blob_ref(body->blob);
        rank->result.offset = (size_t)(body->data - body->blob->data);
        rank->result.len = body->len;
        return true;
    }
    struct blob *all = c->answer.gathered;
    if (!all) {
        c->answer.gathered = all = blob_copy(body->data, body->len, c->quota);
        rank->result.len = all ? body->len : 0;
        return all != NULL;
    }
    if (!blob_reserve(all, body->len))
        return false;
    rank->result.offset = all->len;
    rank->result.len = body->len;
    if (body->len)
        memcpy(all->data + rank->result.offset, body->data, body->len);
    all->len += body->len;
    return true;
}

int answer_keep(struct call_rank *rank, const struct call_body *body, struct err *err)
{
    return keep(rank, body) ? 0 : answer_no_room(rank->call, err);
}

struct record_part answer_result(const struct call_rank *rank)
{
    return (struct record_part){rank->result.blob ? rank->result.blob : rank->call->answer.gathered,
                                rank->result.offset, rank->result.len};
}

const char *answer_bytes(const struct record_part *result)
{
    return result->len ? result->blob->data + result->offset : "";
}

// The call is over once its answer is queued. The bytes charged for the call first pay for its answer in the queue.
static void lend(struct call *c)
{
    if (c->session->peer.out)
        c->session->peer.out->queue.credit = c->charged;
}

static void take_back(struct call *c)
{
    if (!c->session->peer.out)
        return;
    call_set_charged(c, c->session->peer.out->queue.credit);
    c->session->peer.out->queue.credit = 0;
}

static void send(struct call *c, uint32_t rank, const struct record_part *parts, size_t n)
{
    const struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = rank};
    lend(c);
    session_send(c->session, &h, parts, n);
    take_back(c);
    c->router->n_results++;
}

int answer_send(struct call *c, const struct record_part *parts, size_t n, struct err *err)
{
    const struct record_writer *out = c->session->peer.out;
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    size_t cost = record_parts_cost(parts, n);
    if (cost > RECORD_BODY_MAX && out && cost > out->queue.max_bytes / 2) // other calls have no part in it
        return answer_no_room(c, err);
    c->stat.bytes_out += len;
    send(c, RECORD_GROUP, parts, n);
    return 0;
}

int answer_send_scatter(struct call *c, const struct scatter *doc, struct blob *own, const struct record_part *sources,
                        struct err *err)
{
    struct record_part *parts = router_parts(c->router, doc->n_parts);
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct scatter_part *p = &doc->parts[i];
        const struct record_part in = p->source == SCATTER_OWN ? (struct record_part){own} : sources[p->source];
        parts[i] = (struct record_part){in.blob, in.offset + p->offset, p->len};
    }
    return answer_send(c, parts, doc->n_parts, err);
}

// ERR_LIMIT: the client's queue would have no room for the result even if it were empty.
static int check_length(const struct call *c, uint32_t rank, const struct call_body *body, struct err *err)
{
    const struct record_writer *out = c->session->peer.out;
    const struct record_part part = body_part(body, body->blob);
    size_t cost = record_item_cost + record_parts_cost(&part, 1), most = out ? out->queue.max_bytes : SIZE_MAX;
    if (cost <= most)
        return 0;
    return err_set(err, ERR_LIMIT,
                   "%s() of %s ran, but the result of rank %u has %zu bytes, and this connection takes at most %zu: "
                   "keep the result on its rank (\"keep\"), or call over cadre.v1",
                   c->req.method, c->group->key, rank, body->len, body->len - MIN(body->len, cost - most));
}

int answer_send_single(struct call *c, uint32_t rank, const struct call_body *body, struct err *err)
{
    if (body->blob && check_length(c, rank, body, err) < 0)
        return err->code;
    if (body->blob && !blob_recharge(body->blob, c->quota))
        return answer_no_room(c, err);
    c->stat.bytes_out = body->len;
    if (!body->blob) {
        answer_send_copy(c, rank, body->len ? body->data : "null", body->len ? body->len : 4);
        return 0;
    }
    const struct record_part part = body_part(body, body->blob);
    send(c, rank, &part, 1);
    return 0;
}

void answer_send_copy(struct call *c, uint32_t rank, const char *body, size_t len)
{
    lend(c);
    session_copy(c->session, &(struct record_header){.type = RECORD_RESULT, .call = c->req.id, .rank = rank}, body,
                 len);
    take_back(c);
    c->router->n_results++;
}

int answer_part(struct call *c, uint32_t rank, const struct record_part *part, bool first, struct err *err)
{
    const struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = rank};
    struct peer *p = &c->session->peer;
    c->stat.bytes_out += part->len;
    if (!p->out || p->close_code)
        return 0;
    peer_changed(p);
    if (!first)
        return record_stream_add(&c->answer.stream, part, 1, err);
    list_remove(&c->open);
    list_append(&c->session->answering, &c->open);
    return record_stream_begin(&c->answer.stream, &p->out->queue, &h, part, 1, err);
}

int answer_pass(struct call *c, uint32_t rank, const struct call_body *piece, bool first, struct err *err)
{
    if (!piece->len)
        return 0;
    struct blob *kept = body_keep_piece(piece, c->quota);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but the rest of its result exceeds the memory of this client",
                       c->req.method, c->group->key);
    const struct record_part part = body_part(piece, kept);
    int r = answer_part(c, rank, &part, first, err);
    blob_unref(kept);
    return r;
}

size_t answer_waits(const struct call *c)
{
    return record_stream_waits(&c->answer.stream);
}

void answer_streamed(struct call *c)
{
    record_stream_end(&c->answer.stream);
    record_stream_forget(&c->answer.stream);
    peer_changed(&c->session->peer);
    c->router->n_results++;
}

static void tell(struct call_rank *rank, bool pause)
{
    if (peer_pause(&rank->member->peer, pause, rank->call->id, rank->member->rank))
        rank->result.paused = pause;
}

bool answer_flow(struct call_rank *rank, size_t waits)
{
    if (rank->member && call_flow_changes(rank->call, rank->result.paused, waits))
        tell(rank, !rank->result.paused);
    return rank->result.paused;
}

bool answer_abort(struct call *c)
{
    bool paused = false;
    (void)record_stream_drop(&c->answer.stream);
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_rank *rank = &c->ranks[i];
        if (rank->result.paused && rank->member)
            tell(rank, false);
        paused = paused || (rank->result.paused && rank->member);
    }
    return paused;
}

void answer_done(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        blob_unref(TAKE_PTR(c->ranks[i].result.blob));
    blob_unref(TAKE_PTR(c->answer.gathered));
}
