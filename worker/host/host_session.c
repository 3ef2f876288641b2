// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_session.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/error_body.h"
#include "common/wire/record_reader.h"
#include "worker/host/builtin.h"
#include "worker/host/control_records.h"
#include "worker/host/cow_args.h"
#include "worker/host/downloads.h"
#include "worker/host/host_body.h"
#include "worker/host/host_request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_MAX = 16 << 10 }; // longer bodies are shared with the queue, not copied

struct host_session {
    struct request_owner owner;
    struct host_session_config config;
    struct loop *loop;
    struct rand rand;
    char *address, *ticket;
    struct ws_client *client; // NULL: it waits before it dials again
    struct record_reader reader;
    struct ws_sharing sharing; // shared memory with the proxy
    struct memory *memory;     // for long results
    struct quota *quota;
    bool welcomed, closing, stopping;
    int told;                 // the error code of the loss that was reported; 0 = none was
    struct loop_timer *timer; // for dialing, for the WELCOME, and for the end
    int64_t retry_ms;
    int refused;    // the code with which the proxy ended this connection, 0 = it gave none
    struct err why; // why this side has closed the connection
    // Calls without an answer, in the order of their records. Some may wait for an earlier call whose long body has not
    // arrived completely. The executor has the others.
    struct list requests;
    size_t n_requests;
    size_t n_waiting;
    struct downloads downloads;
    uint32_t last_id; // the highest id of a call on this connection
};

static void dial(struct host_session *s);

// Ends the connection from this side. on_close() follows.
static void hang_up(struct host_session *s, unsigned code, const struct err *err)
{
    if (s->closing)
        return;
    s->closing = true;
    s->why = *err;
    ws_client_close(s->client, code, err->msg);
}

static struct record_header header_of(const struct host_session *s, enum record_type type, uint32_t id)
{
    return (struct record_header){.call = id, .rank = (uint32_t)s->config.worker->rank, .type = (uint8_t)type};
}

static void sent(struct host_session *s, int r, const struct err *err)
{
    if (r == ERR_LIMIT) // the proxy sends calls and does not read
        hang_up(s, FRAME_CLOSE_TRY_LATER, err);
}

static void send_record(struct host_session *s, enum record_type type, uint32_t id, const char *body, size_t len)
{
    struct err err = ERR_INIT;
    const struct record_header h = header_of(s, type, id);
    sent(s, ws_client_record_copy(s->client, &h, body, len, &err), &err);
}

static void send_blob(struct host_session *s, enum record_type type, uint32_t id, struct blob *blob)
{
    struct err err = ERR_INIT;
    const struct record_header h = header_of(s, type, id);
    sent(s, ws_client_record(s->client, &h, &(struct record_part){blob, 0, blob->len}, 1, &err), &err);
    blob_unref(blob);
}

static void send_long(struct host_session *s, enum record_type type, uint32_t id, struct buf *body)
{
    size_t len = body->len;
    struct blob *shared = s->owner.memory && len >= SHARE_MIN ? memory_blob(s->memory, len) : NULL;
    if (shared)
        memcpy(shared->data, body->data, len);
    send_blob(s, type, id, shared ? shared : blob_adopt(buf_take(body), len));
}

static void send_error(struct host_session *s, uint32_t id, int code, const char *message)
{
    _cleanup_(buf_done) struct buf body = BUF_INIT(8192);
    call_encode_error(&body, err_name(code), message, false);
    send_record(s, RECORD_ERROR, id, buf_str(&body), body.len);
}

// HELLO and WELCOME

static void send_hello(struct host_session *s)
{
    _cleanup_(writer_done) struct json_writer w;
    control_records_hello(&s->config, s->ticket, &w);
    send_record(s, RECORD_HELLO, 0, buf_str(&w.buf), w.buf.len);
}

bool host_session_send(struct host_session *s, enum record_type type, const char *body, size_t len)
{
    bool connected = s->welcomed && !s->closing;
    if (connected)
        send_record(s, (uint8_t)type, 0, body, len);
    return connected;
}

static int take_welcome(struct host_session *s, const struct record *r, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    if (s->welcomed)
        return err_set(err, ERR_PROTO, "a second WELCOME");
    int parsed = json_parse(r->body, r->len, NULL, &a, &root, err);
    if (parsed == 0) {
        const char *ticket = control_records_welcome(&s->config, root, &a);
        if (ticket) {
            free(s->ticket);
            s->ticket = xstrdup(ticket);
        }
        s->welcomed = true;
        s->told = 0;
        s->retry_ms = 0;
        loop_timer_disarm(s->timer);
        if (s->config.shares && ws_sharing_begin(&s->sharing, root, s->client, &s->reader))
            ws_sharing_offer(&s->sharing, &s->memory);
        s->config.on_ready(s->config.ctx);
    } else {
        err_wrap(err, "WELCOME");
    }
    return parsed;
}

static int take_goodbye(struct host_session *s, const struct record *r)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *why = json_str(json_get(json_read(r->body, r->len, &a), "reason"), &a);
    err_set(&err, ERR_GONE, "the proxy at %s says goodbye%s%s", s->address, why ? ": " : "", why ? why : "");
    hang_up(s, FRAME_CLOSE_NORMAL, &err);
    return 0;
}

// The proxy refuses the session, for example its HELLO.
static int take_refusal(struct host_session *s, const struct record *r)
{
    struct err err;
    error_body_read(r->body, r->len, &err);
    s->refused = err.code;
    err_wrap(&err, "the proxy at %s refuses this worker", s->address);
    hang_up(s, FRAME_CLOSE_NORMAL, &err);
    return 0;
}

// Calls

static struct host_request *find_request(struct host_session *s, uint32_t id)
{
    if (id > s->last_id) // a proxy counts up, so a new id needs no search
        return NULL;
    LIST_FOREACH(l, &s->requests) {
        struct host_request *q = CONTAINER_OF(l, struct host_request, link);
        if (q->id == id)
            return q;
    }
    return NULL;
}

static void say_goodbye_when_idle(struct host_session *s);

static void answer(struct request_owner *owner, struct host_request *q, bool ok, struct buf *body)
{
    enum record_type type = ok ? RECORD_RESULT : RECORD_ERROR;
    struct host_session *s = CONTAINER_OF(owner, struct host_session, owner);
    list_remove(&q->link);
    s->n_requests--;
    s->n_waiting -= q->waits;
    size_t shared_len = 0;
    char *shared = ok && !q->quiet ? call_take_shared(&q->call, &shared_len) : NULL;
    if (ok && q->quiet)
        send_record(s, type, q->id, "", 0);
    else if (shared)
        send_blob(s, type, q->id, memory_adopt(s->memory, shared, shared_len));
    else if (body->len > COPY_MAX)
        send_long(s, type, q->id, body);
    else
        send_record(s, type, q->id, buf_str(body), body->len);
    say_goodbye_when_idle(s);
}

static void keep_in_order(struct host_session *s, struct host_request *q)
{
    struct list *at = &s->requests;
    while (at->prev != &s->requests && CONTAINER_OF(at->prev, struct host_request, link)->seq > q->seq)
        at = at->prev;
    list_insert_before(at, &q->link);
    s->n_requests++;
    s->n_waiting++;
    q->waits = true;
}

// The record of an earlier call may not be complete. Then the later calls of the same client wait. The proxy knows the
// clients, and marks these calls as ordered. Calls of other clients start.
static void start_requests(struct host_session *s)
{
    uint64_t unfinished = record_reader_unfinished(&s->reader);
    LIST_FOREACH(l, &s->requests) {
        struct host_request *q = CONTAINER_OF(l, struct host_request, link);
        if (!s->n_waiting)
            break;
        if (!q->waits || (q->ordered && q->seq >= unfinished))
            continue;
        q->waits = false;
        s->n_waiting--;
        host_request_start(q);
    }
}

static void send_download(void *ctx, uint32_t id, struct blob *blob, const struct err *err)
{
    struct host_session *s = ctx;
    if (blob)
        send_blob(s, RECORD_RESULT, id, blob);
    else
        send_error(s, id, err->code, err->msg);
}

// Serves calls that the host answers itself, without the executor. Returns true if it was such a call: it is answered
// or refused.
static bool serve_own(struct host_session *s, const struct record *r, const struct call_head *head, struct blob *body,
                      struct blob *tail, struct err *err)
{
    struct builtin_answer answer;
    struct err none = ERR_INIT;
    const struct record_header h = header_of(s, RECORD_RESULT, r->h.call);
    bool is = builtin_serve(&s->owner, s->quota, head, body, tail, r->h.flags & RECORD_CODE, &answer, err);
    if (is && err->code == 0 && answer.object.values) {
        (void)downloads_begin(&s->downloads, r->h.call, &answer.object, s->quota, err);
    } else if (is && err->code == 0 && answer.object.blob) {
        struct record_part part = {answer.object.blob, answer.object.offset, answer.object.len};
        sent(s, ws_client_record(s->client, &h, &part, 1, &none), &none);
    } else if (is && err->code == 0) {
        send_record(s, RECORD_RESULT, r->h.call, buf_str(&answer.text), answer.text.len);
    }
    builtin_answer_done(&answer);
    return is;
}

static int no_room(const struct host_session *s, size_t len, struct err *err)
{
    return err_set(err, ERR_LIMIT,
                   "calls with %zu bytes wait for rank %d already, of %zu (CADRE_CALL_BYTES); no room for %zu more",
                   quota_used(s->quota), s->config.worker->rank, s->config.bytes_max, len);
}

static void send_limit(struct host_session *s, const struct record *r)
{
    struct err err = ERR_INIT;
    s->last_id = MAX(s->last_id, r->h.call);
    no_room(s, r->offset + r->len, &err);
    send_error(s, r->h.call, ERR_LIMIT, err.msg);
}

static int take_call(struct host_session *s, const struct record *r, struct err *err)
{
    struct err refused = ERR_INIT;
    struct host_request *q;
    struct call_head head;
    int rank = s->config.worker->rank;
    if (find_request(s, r->h.call))
        return err_set(err, ERR_PROTO, "call id %u is in use", r->h.call);
    if (r->h.flags & RECORD_PARTS || (r->h.rank != (uint32_t)rank && r->h.rank != RECORD_GROUP))
        return err_set(err, ERR_PROTO, "a CALL for other ranks than %d", rank);
    s->last_id = MAX(s->last_id, r->h.call);
    struct blob *tail, *body = body_keep(r, s->quota, &tail);
    size_t len = r->len + (r->tail ? r->tail->len : 0);
    if (s->stopping)
        err_set(&refused, ERR_UNAVAILABLE, "rank %d is stopping", rank);
    else if (s->n_requests >= SESSION_CALLS_MAX)
        err_set(&refused, ERR_LIMIT, "%zu calls wait for rank %d already; call again later", s->n_requests, rank);
    else if (!body || len > s->config.bytes_max)
        no_room(s, len, &refused);
    else if (body_head(body, &head, &refused) < 0 || serve_own(s, r, &head, body, tail, &refused))
        ;
    else if (host_request_new(&s->owner, r->h.call, r->seq, &head, body, tail, &q, &refused) == 0) {
        q->quiet = r->h.flags & RECORD_QUIET;
        q->ordered = r->h.flags & RECORD_ORDERED;
        q->code = r->h.flags & RECORD_CODE;
        if (r->h.flags & RECORD_REFS && host_request_fetch_args(q, &refused) < 0)
            host_request_abandon(q);
        else
            keep_in_order(s, q);
    }
    blob_unref(body);
    if (refused.code)
        send_error(s, r->h.call, refused.code, refused.msg);
    return 0;
}

// Collects long bodies. If there is no room for a body, its other pieces still arrive. The error is sent when the last
// one has arrived, not before.
static int take_piece(struct host_session *s, const struct record *r, struct err *err)
{
    bool last = !(r->h.flags & RECORD_MORE);
    if (r->h.type != RECORD_CALL && r->offset)
        return err_set(err, ERR_LIMIT, "no room for a %s of more than %zu bytes", record_type_name(r->h.type),
                       r->offset);
    if (r->offset == 0 && !r->over)
        (void)record_reader_collect(&s->reader, r, s->config.bytes_max, 0);
    else if (last)
        send_limit(s, r);
    return 0;
}

static int take_record(struct host_session *s, const struct record *r, struct err *err)
{
    if ((r->h.flags & RECORD_MORE) || r->offset)
        return take_piece(s, r, err);
    bool of_session = r->h.call == 0; // for an ERROR, too
    if (!s->welcomed && !of_session)
        return err_set(err, ERR_PROTO, "a %s before the WELCOME", record_type_name(r->h.type));
    switch (r->h.type) {
    case RECORD_WELCOME:
        return take_welcome(s, r, err);
    case RECORD_GOODBYE:
        return take_goodbye(s, r);
    case RECORD_PLACE:
    case RECORD_ARCHIVE:
        return control_records_answer(&s->config, r, err);
    case RECORD_FREE:
        if (s->config.objects)
            objects_release(s->config.objects, r->body, r->len);
        return 0;
    case RECORD_ERROR:
        return of_session ? take_refusal(s, r) : err_set(err, ERR_PROTO, "an answer to a call that was not made");
    case RECORD_CALL:
        return take_call(s, r, err);
    case RECORD_MEMORY:
    case RECORD_RETURN:
        if (ws_sharing_record(&s->sharing, r, err) < 0)
            return err->code;
        s->owner.memory = s->sharing.share.lends ? s->memory : NULL;
        return 0;
    case RECORD_CANCEL: {
        struct host_request *q = find_request(s, r->h.call);
        if (q) // else its answer is on the way
            host_request_cancel(q, ERR_CANCELED, "canceled before it could begin");
        return 0;
    }
    case RECORD_HOLD:
    case RECORD_GO: // else it is sent already
        (void)record_writer_hold(ws_client_records(s->client), r->h.call, true, r->h.type == RECORD_HOLD);
        return 0;
    default:
        return err_set(err, ERR_PROTO, "a %s, which workers do not support", record_type_name(r->h.type));
    }
}

// The connection

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct host_session *s = ctx;
    struct record r;
    struct err err = ERR_INIT;
    int got = 0;
    while (!s->closing && (got = record_reader_next(&s->reader, &data, &len, &r, &err)) > 0) {
        got = take_record(s, &r, &err);
        if (got < 0)
            break;
    }
    if (s->closing)
        return;
    if (got == 0 && end)
        got = record_reader_end(&s->reader, &err);
    if (got < 0)
        hang_up(s, got == ERR_LIMIT ? FRAME_CLOSE_TOO_BIG : FRAME_CLOSE_PROTOCOL, &err);
    else
        start_requests(s);
}

static char *on_buffer(void *ctx, size_t *ret_room)
{
    struct host_session *s = ctx;
    return s->closing ? NULL : record_reader_buffer(&s->reader, ret_room);
}

static void on_open(void *ctx, const char *subprotocol)
{
    struct host_session *s = ctx;
    struct err err = ERR_INIT;
    if (*subprotocol) {
        send_hello(s);
        return;
    }
    err_set(&err, ERR_PROTO, "%s does not speak %s: is it Cadre's proxy?", s->address, RECORD_SUBPROTOCOL);
    hang_up(s, FRAME_CLOSE_PROTOCOL, &err);
}

static void finish_stop(struct host_session *s) // calls on_stopped() from the loop
{
    loop_timer_free(s->timer);
    s->timer = loop_timer_new(s->loop, s->config.on_stopped, s->config.ctx);
    loop_timer_arm(s->timer, 0);
}

static void drop_connection(struct host_session *s)
{
    cow_args_keep_all();
    ws_sharing_end(&s->sharing, &s->memory);
    s->owner.memory = NULL;
    ws_client_free(TAKE_PTR(s->client));
    LIST_FOREACH(l, &s->requests)
        host_request_abandon(CONTAINER_OF(l, struct host_request, link));
    downloads_end(&s->downloads);
    if (s->config.objects)
        (void)object_store_drop_owned(s->config.objects->store, &s->owner);
    s->n_requests = 0;
    s->n_waiting = 0;
    s->last_id = 0;
    record_reader_done(&s->reader);
}

// Returns how long to wait before dialing again.
static int64_t next_wait(struct host_session *s)
{
    bool busy = s->refused == ERR_UNAVAILABLE || s->refused == ERR_THROTTLED;
    if (s->refused == ERR_CONFLICT || s->refused == ERR_FORBIDDEN || s->refused == ERR_UNAUTHORIZED) {
        s->retry_ms = 0;
        return rand_range(&s->rand, SESSION_REFUSED_MS / 2, SESSION_REFUSED_MS);
    }
    s->retry_ms = s->retry_ms ? MIN(s->retry_ms * 2, SESSION_RETRY_MAX_MS)
                  : busy      ? SESSION_AGAIN_MS
                              : SESSION_RETRY_MIN_MS;
    return rand_range(&s->rand, s->retry_ms / 2, s->retry_ms);
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *close_err)
{
    struct host_session *s = ctx;
    if (!s->closing && code == FRAME_CLOSE_POLICY)
        s->refused = ERR_FORBIDDEN;
    struct err err = s->closing ? s->why : *close_err;
    if (!s->closing && err.code == 0)
        err_set(&err, ERR_GONE, "the proxy at %s closed the connection (code %u%s%s)", s->address, code,
                *reason ? ": " : "", reason);
    drop_connection(s);
    if (s->stopping) {
        finish_stop(s);
        return;
    }
    s->welcomed = false;
    if (s->refused == ERR_GONE) {
        s->config.on_over(s->config.ctx, &err);
        return;
    }
    int64_t wait = next_wait(s);
    loop_timer_arm(s->timer, wait);
    // A certificate that is not trusted is reported even after another reason, because somebody has to act.
    bool first = !s->told || (err.code == ERR_FORBIDDEN && s->told != err.code);
    if (first)
        s->told = err.code;
    s->config.on_lost(s->config.ctx, &err, wait, first);
}

static void on_timer(void *ctx)
{
    struct host_session *s = ctx;
    struct err err = ERR_INIT;
    if (!s->client) {
        dial(s);
        return;
    }
    err_set(&err, ERR_TIMEOUT, "no WELCOME from %s within %d ms", s->address, SESSION_WELCOME_MS);
    hang_up(s, FRAME_CLOSE_POLICY, &err);
}

static struct ws_client *new_client(struct host_session *s, struct err *err)
{
    struct ws_client_config config = {
        .address = s->address,
        .path = s->config.path,
        .subprotocols = RECORD_SUBPROTOCOL,
        .tls = s->config.tls,
        .server_name = s->config.server_name,
        .max_queue = 2 * CALL_RESULT_MAX,
        .on_open = on_open,
        .on_data = on_data,
        .on_buffer = on_buffer,
        .on_close = on_close,
        .ctx = s,
    };
    return ws_client_new(s->loop, &config, err);
}

static void dial(struct host_session *s)
{
    struct err err = ERR_INIT;
    struct record_reader_config reader = {.tail = true, .max_body = SESSION_BODY_MAX, .quota = s->quota};
    s->closing = false;
    s->refused = 0;
    s->client = new_client(s, &err);
    if (!s->client)
        abort(); // host_session_new() has tested the same configuration
    record_reader_init(&s->reader, &reader);
    loop_timer_arm(s->timer, SESSION_WELCOME_MS);
}

struct host_session *host_session_new(struct loop *loop, const struct host_session_config *config, struct err *err)
{
    struct host_session *s = xcalloc(1, sizeof *s);
    s->config = *config;
    if (!s->config.bytes_max)
        s->config.bytes_max = SESSION_BYTES_DEFAULT;
    s->address = xstrdup(config->address);
    s->loop = loop;
    s->sharing.own = config->own;
    s->owner = (struct request_owner){loop, config->executor, config->roles, config->client, config->objects, answer};
    list_init(&s->requests);
    downloads_init(&s->downloads, send_download, s);
    struct ws_client *probe = new_client(s, err);
    if (!probe) {
        free(s->address);
        free(s);
        return NULL;
    }
    ws_client_free(probe);
    rand_seed(&s->rand, config->seed);
    s->ticket = config->ticket ? xstrdup(config->ticket) : NULL;
    s->quota = quota_new(s->config.bytes_max, NULL);
    quota_keep_body(s->quota, s->config.bytes_max); // a proxy that sends such a body once sends it again
    s->timer = loop_timer_new(loop, on_timer, s);
    dial(s);
    return s;
}

bool host_session_up(const struct host_session *s)
{
    return s->welcomed;
}

// The end

static void say_goodbye_when_idle(struct host_session *s)
{
    static const char goodbye[] = "{\"reason\":\"the worker was told to stop\"}";
    if (!s->stopping || s->closing || !list_empty(&s->requests))
        return;
    send_record(s, RECORD_GOODBYE, 0, goodbye, sizeof goodbye - 1);
    hang_up(s, FRAME_CLOSE_GOING_AWAY, &(struct err){0});
}

void host_session_stop(struct host_session *s)
{
    if (s->stopping)
        return;
    s->stopping = true;
    if (!s->client || !s->welcomed) {
        if (s->client)
            drop_connection(s);
        finish_stop(s);
        return;
    }
    LIST_FOREACH(l, &s->requests)
        host_request_cancel(CONTAINER_OF(l, struct host_request, link), ERR_UNAVAILABLE, "the worker was told to stop");
    say_goodbye_when_idle(s);
}

void host_session_free(struct host_session *s)
{
    if (!s)
        return;
    if (s->client)
        drop_connection(s);
    loop_timer_free(s->timer);
    free_list_done(&s->owner.unused);
    quota_unref(s->quota);
    memory_free(s->memory);
    free(s->address);
    free(s->ticket);
    free(s);
}
