// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/uplink.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "sdk/c/client/client_fault.h"
#include "sdk/c/client/client_printed.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROTOCOL_VERSION = 1, MESSAGE_MAX = 4 << 20 }; // of records: the proxy sends at most 1 MiB

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

// Errors that stay the same after another try. A name that cannot be looked up is not one of these: it has no HTTP
// status.
static bool is_final(const struct err *err)
{
    switch (err->code) {
    case ERR_UNAUTHORIZED:
    case ERR_FORBIDDEN:
    case ERR_INVALID:
    case ERR_PROTO:
        return true;
    case ERR_NOT_FOUND:
        return err->http_status != 0;
    default:
        return false;
    }
}

static void begin_sharing(struct uplink *u, const struct json *welcome)
{
    if (ws_sharing_begin(&u->sharing, welcome, u->ws, &u->reader))
        ws_sharing_offer(&u->sharing, u->config.memory);
}

struct blob *uplink_blob(struct uplink *u, size_t len, struct quota *quota)
{
    struct blob *b =
        u->sharing.share.lends && len >= SHARE_MIN ? memory_blob(ws_sharing_memory(u->config.memory), len) : NULL;
    return b ? b : blob_new(len, quota);
}

static void rest(struct uplink *u)
{
    ws_sharing_end(&u->sharing, u->config.memory);
    ws_client_free(TAKE_PTR(u->ws));
    record_reader_done(&u->reader);
    u->closing = false;
    loop_timer_disarm(u->timer);
    if (u->left)
        return;
    if (u->needed)
        loop_timer_arm(u->timer, u->not_before_ms - now_ms());
    else if (!u->refused)
        loop_timer_arm(u->timer, MAX(u->not_before_ms - now_ms(), u->idle_ms));
}

// Before a pause, each known address is tried.
static bool all_failed(const struct uplink *u)
{
    return u->failures >= (u->config.addresses ? MAX(ws_addresses_count(u->config.addresses), (size_t)1) : 1);
}

static int64_t pause_after(struct uplink *u, const struct err *why)
{
    if (!all_failed(u))
        return 0;
    int64_t most = why->code == ERR_THROTTLED ? UPLINK_ASKED_MAX_MS : UPLINK_RETRY_MAX_MS;
    int64_t wait = rand_range(&u->rand, u->backoff_ms / 2, u->backoff_ms);
    u->backoff_ms = MIN(u->backoff_ms * 2, (int64_t)UPLINK_RETRY_MAX_MS);
    u->idle_ms = u->idle_ms ? MIN(u->idle_ms * 2, (int64_t)UPLINK_RETRY_IDLE_MS) : wait;
    return MAX(wait, MIN(why->retry_after_ms, most));
}

static void note_end(struct uplink *u, const struct err *why)
{
    if (u->state != UPLINK_DIALING && now_ms() - u->up_since_ms >= UPLINK_STEADY_MS) {
        u->failures = 0;
        u->backoff_ms = UPLINK_RETRY_MIN_MS;
        u->idle_ms = 0;
    }
    u->failures++;
    u->not_before_ms = now_ms() + pause_after(u, why);
}

static void down(struct uplink *u, const struct err *why)
{
    if (u->state == UPLINK_DOWN)
        return;
    note_end(u, why);
    u->refused = u->state == UPLINK_DIALING && is_final(why) && all_failed(u);
    u->needed = false;
    u->state = UPLINK_DOWN;
    loop_timer_disarm(u->timer);
    u->config.on_down(u->config.ctx, u, why, u->refused);
}

// Ends it from this side. The owner is told at once; the peer gets a moment to answer.
static void hang_up(struct uplink *u, unsigned code, const struct err *why)
{
    if (u->closing)
        return;
    u->closing = true;
    ws_client_close(u->ws, code, why->msg);
    down(u, why);
    loop_timer_arm(u->timer, UPLINK_LINGER_MS);
}

// Messages must say which of several replicas is meant.
static void note_where(struct uplink *u)
{
    snprintf(u->where, sizeof u->where, "%.300s%s", u->config.settings->url, ws_client_at(u->ws));
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *close_err)
{
    struct uplink *u = ctx;
    struct err err = *close_err;
    note_where(u);
    if (!err.code)
        err_set(&err, code == FRAME_CLOSE_POLICY ? ERR_FORBIDDEN : ERR_UNAVAILABLE,
                "the proxy at %s closed the connection%s%s (code %u)", u->where, *reason ? ": " : "", reason, code);
    down(u, &err);
    rest(u);
}

static void send_hello(struct uplink *u, const char *token)
{
    const struct settings *s = u->config.settings;
    const struct record_header h = {.type = RECORD_HELLO, .rank = RECORD_GROUP};
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    struct err err = ERR_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "role", "controller");
    writer_i64(&w, "version", PROTOCOL_VERSION);
    writer_str(&w, "software", "cadre_client " CADRE_VERSION);
    writer_str(&w, "namespace", s->ns);
    writer_str_set(&w, "group", s->group);
    writer_str_set(&w, "token", token);
    if (s->on_output)
        writer_bool(&w, "output", true);
    writer_object_end(&w);
    if (uplink_send_copy(u, &h, buf_str(&w.buf), w.buf.len, &err) < 0)
        hang_up(u, FRAME_CLOSE_INTERNAL, &err);
}

static void on_open(void *ctx, const char *subprotocol)
{
    struct uplink *u = ctx;
    struct err err = ERR_INIT;
    note_where(u);
    _cleanup_(free_p) char *token =
        u->config.settings->token_in_hello ? settings_token(u->config.settings, &err) : NULL;
    if (!err.code && !*subprotocol)
        err_set(&err, ERR_PROTO, "%s does not speak %s: is it Cadre's proxy?", u->config.settings->url,
                RECORD_SUBPROTOCOL);
    if (err.code)
        hang_up(u, FRAME_CLOSE_NORMAL, &err);
    else
        send_hello(u, token);
}

static void take_limits(struct uplink *u, const struct json *welcome)
{
    int64_t v;
    u->max_calls = json_i64(json_get(welcome, "maxCalls"), &v) && v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
    u->max_body = json_i64(json_get(welcome, "maxBody"), &v) && v > 0 ? (size_t)v : 0;
}

static int take_welcome(struct uplink *u, const struct record *r, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    if (u->state != UPLINK_DIALING)
        return err_set(err, ERR_PROTO, "a second WELCOME");
    if (json_parse(r->body, r->len, NULL, &a, &root, err) < 0)
        return err_wrap(err, "WELCOME");
    take_limits(u, root);
    begin_sharing(u, root);
    loop_timer_disarm(u->timer);
    u->state = UPLINK_UP;
    u->up_since_ms = now_ms();
    u->config.on_change(u->config.ctx);
    return 0;
}

// An ERROR of the session: the proxy refuses the HELLO, or withdraws a permission.
static void take_refusal(struct uplink *u, const struct record *r)
{
    cadre_client_error f;
    struct err err = ERR_INIT;
    fault_decode(&f, r->body, r->len);
    fault_err(&f, &err);
    err.http_status = 403; // the proxy said so
    err_wrap(&err, "the proxy at %s refuses this client", u->where);
    hang_up(u, FRAME_CLOSE_NORMAL, &err);
}

static int take_record(struct uplink *u, const struct record *r, struct err *err)
{
    if (r->h.type == RECORD_WELCOME)
        return take_welcome(u, r, err);
    if (r->h.type == RECORD_ERROR && r->h.call == 0) {
        take_refusal(u, r);
        return 0;
    }
    if (u->state == UPLINK_DIALING)
        return err_set(err, ERR_PROTO, "a %s before the WELCOME", record_type_name(r->h.type));
    if (ws_sharing_is(r))
        return ws_sharing_record(&u->sharing, r, err);
    if (r->h.type == RECORD_GOODBYE) {
        u->state = UPLINK_LEAVING;
        u->config.on_change(u->config.ctx);
        return 0;
    }
    if (r->h.type == RECORD_HOLD || r->h.type == RECORD_GO) { // does nothing if all of its arguments are out
        (void)record_writer_hold(ws_client_records(u->ws), r->h.call, false, r->h.type == RECORD_HOLD);
        return 0;
    }
    if (r->h.type == RECORD_OUTPUT) {
        printed_tell(u->config.settings, r->body, r->len);
        return 0;
    }
    if (r->h.type != RECORD_RESULT && r->h.type != RECORD_ERROR)
        return err_set(err, ERR_PROTO, "a %s, which clients do not support", record_type_name(r->h.type));
    if (r->h.flags & RECORD_PARTS)
        return err_set(err, ERR_PROTO, "the answer to call %u comes in parts, which this client did not ask for",
                       r->h.call);
    u->config.on_answer(u->config.ctx, u, r);
    return 0;
}

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct uplink *u = ctx;
    struct record r;
    struct err err = ERR_INIT;
    int got = 0;
    while (!u->closing && (got = record_reader_next(&u->reader, &data, &len, &r, &err)) > 0) {
        got = take_record(u, &r, &err);
        if (got < 0)
            break;
    }
    if (u->closing)
        return;
    if (got == 0 && end)
        got = record_reader_end(&u->reader, &err);
    if (got == ERR_LIMIT && u->reader.now.h.call)
        u->config.on_too_long(u->config.ctx, u, u->reader.now.h.call, &err);
    if (got < 0)
        hang_up(u, got == ERR_LIMIT ? FRAME_CLOSE_TOO_BIG : FRAME_CLOSE_PROTOCOL, &err);
}

static char *on_buffer(void *ctx, size_t *ret_room)
{
    struct uplink *u = ctx;
    return u->closing ? NULL : record_reader_buffer(&u->reader, ret_room);
}

static void on_drained(void *ctx)
{
    struct uplink *u = ctx;
    u->config.on_change(u->config.ctx);
}

static bool waits(void *ctx)
{
    const struct uplink *u = ctx;
    return u->n_sent > 0;
}

// How long the next attempt may take.
static int64_t patience_ms(const struct uplink *u)
{
    return MIN(u->config.settings->connect_ms, (int64_t)UPLINK_PATIENCE_MS << MIN(u->failures / 2, 10U));
}

static struct ws_client *new_client(struct uplink *u, struct err *err)
{
    const struct settings *s = u->config.settings;
    _cleanup_(free_p) char *token = s->token_in_hello ? NULL : settings_token(s, err);
    if (err->code)
        return NULL;
    _cleanup_(free_p) char *bearer = token ? xasprintf("Bearer %s", token) : NULL;
    const struct handshake_header authorization = {"Authorization", bearer};
    const struct ws_client_config config = {
        .address = s->address,
        .path = s->path,
        .subprotocols = RECORD_SUBPROTOCOL,
        .headers = &authorization,
        .n_headers = token ? 1 : 0,
        .tls = s->tls,
        .server_name = s->server_name,
        .addresses = u->config.addresses,
        .open_ms = patience_ms(u),
        .waits = waits,
        .max_message = MESSAGE_MAX,
        .max_queue = s->max_bytes + WS_HIGH_MARK,
        .on_open = on_open,
        .on_data = on_data,
        .on_buffer = on_buffer,
        .on_drained = on_drained,
        .on_close = on_close,
        .ctx = u,
    };
    return ws_client_new(u->config.loop, &config, err);
}

static void dial(struct uplink *u)
{
    const struct record_reader_config reader = {
        .whole = true, .max_body = u->config.settings->max_body, .quota = u->config.quota};
    struct err err = ERR_INIT;
    u->state = UPLINK_DIALING;
    record_reader_init(&u->reader, &reader);
    u->ws = new_client(u, &err);
    if (u->ws) {
        loop_timer_arm(u->timer, patience_ms(u));
    } else {
        down(u, &err);
        rest(u);
    }
}

static void on_timer(void *ctx)
{
    struct uplink *u = ctx;
    struct err err = ERR_INIT;
    if (!u->ws) {
        dial(u);
        return;
    }
    if (!u->closing) {
        note_where(u);
        err_set(&err, ERR_TIMEOUT, "no WELCOME from the proxy at %s within %lld ms", u->where,
                (long long)patience_ms(u));
        down(u, &err);
    }
    rest(u);
}

// The new uplink takes over what this one has learned about dialing.
static void hand_over(struct uplink *from, struct uplink *to, const struct err *why)
{
    note_end(from, why);
    ws_client_avoid(from->ws);
    from->left = true;
    to->failures = from->failures;
    to->backoff_ms = from->backoff_ms;
    to->idle_ms = from->idle_ms;
    to->not_before_ms = from->not_before_ms;
}

struct uplink *uplink_new(const struct uplink_config *config, struct uplink *leaving, const struct err *why)
{
    struct uplink *u = xcalloc(1, sizeof *u);
    *u = (struct uplink){.config = *config, .backoff_ms = UPLINK_RETRY_MIN_MS};
    list_init(&u->sent);
    list_init(&u->link);
    rand_seed_system(&u->rand);
    if (leaving)
        hand_over(leaving, u, why);
    u->timer = loop_timer_new(config->loop, on_timer, u);
    loop_timer_arm(u->timer, MAX(u->not_before_ms - now_ms(), (int64_t)0));
    return u;
}

void uplink_free(struct uplink *u)
{
    ws_sharing_end(&u->sharing, u->config.memory);
    if (u->ws)
        record_reader_done(&u->reader);
    ws_client_free(TAKE_PTR(u->ws));
    loop_timer_free(TAKE_PTR(u->timer));
    list_remove(&u->link);
    free(u);
}

void uplink_need(struct uplink *u)
{
    if (u->state == UPLINK_DOWN && !u->ws && !u->left && (!u->needed || !loop_timer_armed(u->timer)))
        loop_timer_arm(u->timer, u->not_before_ms - now_ms());
    u->needed = true;
}

void uplink_leave(struct uplink *u, unsigned code, const char *reason)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_CANCELED, "%s", reason);
    bool known = u->state == UPLINK_UP || u->state == UPLINK_LEAVING; // the proxy knows this client, and must be told
    u->left = true;
    if (u->ws)
        hang_up(u, code, &err);
    if (u->ws && !known)
        rest(u);
    loop_timer_disarm(u->timer);
}

bool uplink_gone(const struct uplink *u)
{
    return !u->ws;
}

int uplink_send(struct uplink *u, const struct record_header *h, const struct record_part *parts, size_t n,
                struct err *err)
{
    return ws_client_record(u->ws, h, parts, n, err);
}

int uplink_send_copy(struct uplink *u, const struct record_header *h, const void *body, size_t len, struct err *err)
{
    return ws_client_record_copy(u->ws, h, body, len, err);
}

void uplink_cancel(struct uplink *u, uint32_t call)
{
    const struct record_header h = {.type = RECORD_CANCEL, .call = call, .rank = RECORD_GROUP};
    struct err err = ERR_INIT;
    if (u->ws && !u->closing)
        (void)uplink_send_copy(u, &h, "{}", 2, &err); // if even this does not fit, the deadline remains
}

bool uplink_withdraw(struct uplink *u, uint32_t call)
{
    if (!u->ws || u->closing)
        return false;
    struct record_writer *w = ws_client_records(u->ws);
    size_t before = w->queue.n_items;
    bool begun = record_writer_drop(w, call, false), left = w->queue.n_items != before;
    if (begun)
        uplink_cancel(u, call);
    return left;
}

struct blob *uplink_take_back(struct uplink *u, uint32_t call)
{
    struct record_writer *w = u->ws ? ws_client_records(u->ws) : NULL;
    struct blob *body = w ? record_writer_body(w, call) : NULL;
    if (body)
        (void)record_writer_drop(w, call, false);
    return body;
}

void uplink_flush(struct uplink *u)
{
    if (u->ws)
        ws_client_flush(u->ws);
}

void uplink_reclaim(struct uplink *u, uint32_t call, const struct blob *args)
{
    if (args->refs == 1 || uplink_gone(u))
        return;
    (void)record_writer_drop(ws_client_records(u->ws), call, false);
    ws_client_own(u->ws, args);
    uplink_cancel(u, call); // for a call that is half out; a waiting call was dropped above
}

bool uplink_lends(const struct uplink *u, size_t len)
{
    return !u->sharing.share.lends || len < SHARE_MIN;
}

bool uplink_ended(const struct uplink *u)
{
    return u->ws && ws_client_ended(u->ws);
}

bool uplink_takes(const struct uplink *u)
{
    return u->state == UPLINK_UP && ws_client_open(u->ws);
}

size_t uplink_queued(const struct uplink *u)
{
    return u->ws ? ws_client_queued(u->ws) : 0;
}
