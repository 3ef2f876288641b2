// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/client.h"
#include "sdk/c/client/buffer.h"
#include "sdk/c/client/future.h"

#include "common/base/mem.h"
#include "common/wire/batch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
    LATE_MS = 1000,  // the proxy's TIMEOUT has more details than ours, so the proxy gets this much longer
    STALE_MS = 3000, // after this long without a turn, the socket is read first
    QUIET_MS = 1,    // the same, if the proxy has ended the connection: calls are then not sent on it, and not in doubt
    COPY_MAX = 16 << 10, // arguments up to this are copied into the queue, longer ones are shared with it
    TURN_MS = 60 * 1000,
    GOODBYE_MS = 1000,
    // Calls that were sent and not answered, if nothing else limits them. A rank refuses more than 1,024.
    FLOCK_MAX = 1000,
    URGENT_MAX = 16, // so much room is kept for them
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

// Answers

static void drop_arguments(struct pending *p)
{
    blob_unref(TAKE_PTR(p->args));
    free(TAKE_PTR(p->more));
}

static void drop_request(struct pending *p)
{
    drop_arguments(p);
    free(TAKE_PTR(p->retry));
}

// No byte of the call is out any more, or the bytes that are out do not count.
static void not_sent(struct pending *p)
{
    if (p->sent)
        p->sent->n_sent--;
    p->sent = NULL;
}

// As soon as the caller gets the answer, it may change its arguments.
static void reclaim(const struct pending *p)
{
    if (!p->args || !p->args->lent)
        return;
    if (p->sent)
        uplink_reclaim(p->sent, (uint32_t)p->id, p->args);
    assert(p->args->refs == 1);
}

// Sets a failed call aside if it may be tried again. False: the call is over.
static bool rest(struct cadre_client *c, struct pending *p, const cadre_client_error *error)
{
    int64_t now = now_ms();
    int64_t pause = p->retry && !c->closing ? retry_after(p->retry, error, &c->rand) : -1;
    if (pause < 0 || (p->timeout_ms && now + pause >= p->created_ms + p->timeout_ms))
        return false;
    reclaim(p);
    not_sent(p);
    p->rests = true;
    list_remove(&p->link);
    list_append(&c->resting, &p->link);
    deadlines_add(&c->deadlines, &p->deadline, now + pause);
    return true;
}

// error: the call failed; r is its ERROR then, or NULL.
static void answer(struct cadre_client *c, struct pending *p, const struct record *r, cadre_client_error *error)
{
    if (error) {
        if (rest(c, p, error))
            return;
        error->may_have_run |= p->retry && p->retry->may_have_run;
    }
    cadre_client_answer a = {.id = p->id, .rank = -1, .error = error};
    void (*done)(void *, const cadre_client_answer *) = p->done;
    void *ctx = p->ctx;
    if (r && !error) {
        a.result = (cadre_client_json){r->body, r->len};
        a.rank = r->h.rank == RECORD_GROUP ? -1 : (int64_t)r->h.rank;
    }
    list_remove(&p->link);
    deadlines_del(&c->deadlines, &p->deadline);
    reclaim(p);
    drop_request(p);
    not_sent(p);
    c->answered++;
    c->n_urgent -= p->urgent;
    if (p->keep && (!c->closing || c->threads))
        future_keep(c, p, r, error);
    else
        pendings_give(&c->calls, p);
    c->answered_in = r && !error ? r->blob : NULL;
    if (done)
        done(ctx, &a);
    c->answered_in = NULL;
}

static void fail(struct cadre_client *c, struct pending *p, const struct err *err, bool may_have_run)
{
    cadre_client_error f;
    fault_from(&f, err, may_have_run);
    answer(c, p, NULL, &f);
}

// Fails all calls of a list, but none that is added meanwhile.
static void fail_all(struct cadre_client *c, struct list *calls,
                     void (*say)(const struct pending *, const struct err *, struct err *), const struct err *why,
                     bool may_have_run)
{
    struct list batch = LIST_INIT(batch);
    list_splice(&batch, calls);
    while (!list_empty(&batch)) {
        struct pending *p = CONTAINER_OF(batch.next, struct pending, link);
        struct err err = ERR_INIT;
        say(p, why, &err);
        fail(c, p, &err, may_have_run);
    }
}

static void say_in_doubt(const struct pending *p, const struct err *why, struct err *err)
{
    err_set(err, ERR_UNAVAILABLE,
            "the connection to the proxy was lost while %s() was pending: it may have run (%s); call it again if that "
            "does no harm",
            p->method, why->msg);
}

static void say_refused(const struct pending *p, const struct err *why, struct err *err)
{
    err_set(err, why->code, "%s() was not sent: %s", p->method, why->msg);
}

static void say_closed(const struct pending *p, const struct err *why, struct err *err)
{
    (void)why;
    err_set(err, ERR_CANCELED, "the client was closed while %s() was pending%s", p->method,
            pending_may_have_run(p) ? "; it may have run" : "");
}

// Sending

static bool has_room(const struct cadre_client *c)
{
    const struct uplink *u = c->uplinks.now;
    bool room = (!u->max_calls || u->n_sent < u->max_calls) && (!c->threads || u->n_sent < FLOCK_MAX);
    return room && uplink_queued(u) < WS_HIGH_MARK;
}

static bool may_send(const struct cadre_client *c, bool urgent)
{
    return uplink_takes(c->uplinks.now) && (urgent || has_room(c));
}

static struct list *queue_of(struct cadre_client *c, bool urgent)
{
    return urgent ? &c->urgent : &c->waiting;
}

static bool waits_any(const struct cadre_client *c)
{
    return !list_empty(&c->urgent) || !list_empty(&c->waiting);
}

// NULL: none waits, or it may not be sent yet.
static struct pending *next_to_send(struct cadre_client *c)
{
    bool urgent = !list_empty(&c->urgent);
    return waits_any(c) && may_send(c, urgent) ? CONTAINER_OF(queue_of(c, urgent)->next, struct pending, link) : NULL;
}

// args: used if p has none of its own.
static int send_records(struct cadre_client *c, struct pending *p, const char *args, size_t len, struct err *err)
{
    const struct record_header h = {.type = RECORD_CALL,
                                    .flags = p->quiet ? RECORD_QUIET : 0,
                                    .call = (uint32_t)p->id,
                                    .rank = p->rank,
                                    .dispatch = p->dispatch,
                                    .execute = p->execute};
    struct buf *out = &c->scratch;
    buf_reset(out);
    buf_append(out, "\0\0\0", 4);
    pending_write_head(p, now_ms(), out);
    if (p->args ? batch_is_safetensors(p->args->data, p->args->len) : batch_is_safetensors(args, len))
        while (out->len % 8) // blanks align the values of the batch in the receiver's memory
            buf_putc(out, ' ');
    record_call_prefix(out->data, (uint32_t)(out->len - 4));
    if (!p->args) {
        buf_append(out, args, len);
        return uplink_send_copy(c->uplinks.now, &h, out->data, out->len, err);
    }
    p->lengthy = true;
    struct blob *head = blob_copy(out->data, out->len, NULL);
    const struct record_part parts[] = {{.blob = head, .len = head->len}, {.blob = p->args, .len = p->args->len}};
    int r = uplink_send(c->uplinks.now, &h, parts, ARRAY_LEN(parts), err);
    blob_unref(head);
    return r;
}

static int send_call(struct cadre_client *c, struct pending *p, const char *args, size_t len, struct err *err)
{
    if (send_records(c, p, args, len, err) < 0)
        return err->code;
    if (!p->retry && !(p->args && p->args->lent))
        blob_unref(TAKE_PTR(p->args)); // if the call comes back unsent, they are in the unsent body
    p->sent = c->uplinks.now;
    p->sent->n_sent++;
    list_remove(&p->link);
    list_append(&p->sent->sent, &p->link);
    if (p->timeout_ms)
        deadlines_add(&c->deadlines, &p->deadline, p->created_ms + p->timeout_ms + LATE_MS);
    else
        deadlines_del(&c->deadlines, &p->deadline);
    return 0;
}

static void tell_down(struct cadre_client *c, const struct err *why)
{
    cadre_client_error f;
    c->why = *why;
    c->told_up = false;
    fault_from(&f, why, false);
    if (c->settings.on_connection)
        c->settings.on_connection(c->settings.ctx, 0, &f);
}

static void pump(void *ctx)
{
    struct cadre_client *c = ctx;
    if (c->stale) { // the next turn comes after the socket was read
        c->stale = false;
        loop_timer_arm(c->pump, 0);
        return;
    }
    struct err goodbye = ERR_INIT;
    if (c->uplinks.now->state == UPLINK_LEAVING && uplinks_move(&c->uplinks, &goodbye))
        tell_down(c, &goodbye);
    for (struct pending *p; (p = next_to_send(c));) {
        struct err err = ERR_INIT;
        if (send_call(c, p, NULL, 0, &err) < 0)
            fail(c, p, &err, false);
    }
}

static void arm_pump(struct cadre_client *c)
{
    if (!loop_timer_armed(c->pump))
        loop_timer_arm(c->pump, 0);
}

static void await_connection(struct cadre_client *c, struct pending *p)
{
    deadlines_add(&c->deadlines, &p->deadline,
                  p->timeout_ms ? p->created_ms + p->timeout_ms : now_ms() + c->settings.unreachable_ms);
    uplink_need(c->uplinks.now);
    arm_pump(c);
}

static void wait_to_be_sent(struct cadre_client *c, struct pending *p)
{
    list_remove(&p->link);
    list_append(queue_of(c, p->urgent), &p->link);
    await_connection(c, p);
}

// Deadlines

static void arm_deadline(struct cadre_client *c)
{
    const struct deadline *first = deadlines_first(&c->deadlines);
    if (!first || (c->timer_at && c->timer_at <= first->at))
        return;
    c->timer_at = first->at;
    loop_timer_arm(c->timer, MAX(first->at - now_ms(), (int64_t)1));
}

static void time_out_sent(struct cadre_client *c, struct pending *p)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_TIMEOUT, "%s(): no answer within %" PRId64 " ms, not even from the proxy at %s; it may have run",
            p->method, p->timeout_ms, c->settings.url);
    if (!p->lengthy || !uplink_withdraw(p->sent, (uint32_t)p->id))
        uplink_cancel(p->sent, (uint32_t)p->id);
    fail(c, p, &err, true);
}

static void time_out_waiting(struct cadre_client *c, struct pending *p)
{
    struct err err = ERR_INIT;
    bool up = c->uplinks.now->state == UPLINK_UP;
    if (!p->timeout_ms && up) { // the call waits for earlier ones, and may wait for ever
        deadlines_add(&c->deadlines, &p->deadline, now_ms() + c->settings.unreachable_ms);
        return;
    }
    int64_t ms = p->timeout_ms ? p->timeout_ms : c->settings.unreachable_ms;
    err_set(&err, p->timeout_ms ? ERR_TIMEOUT : ERR_UNAVAILABLE, "%s() was not sent within %" PRId64 " ms: %s%s%s%s",
            p->method, ms, up ? "earlier calls were in its way" : "no connection to the proxy at ",
            up ? "" : c->settings.url, !up && c->why.msg[0] ? ": " : "", up ? "" : c->why.msg);
    if (p->retry)
        p->retry->left = 0; // this was not a try
    fail(c, p, &err, false);
}

static void on_timer(void *ctx)
{
    struct cadre_client *c = ctx;
    const struct deadline *first;
    int64_t now = now_ms();
    c->timer_at = 0;
    while ((first = deadlines_first(&c->deadlines)) && first->at <= now) {
        struct pending *p = CONTAINER_OF(first, struct pending, deadline);
        if (p->rests) {
            p->rests = false;
            wait_to_be_sent(c, p);
        } else if (p->sent) {
            time_out_sent(c, p);
        } else {
            time_out_waiting(c, p);
        }
    }
    arm_deadline(c);
}

// The connection

static void on_change(void *ctx)
{
    struct cadre_client *c = ctx;
    if (c->uplinks.now->state == UPLINK_UP && !c->told_up) {
        c->told_up = true;
        if (c->settings.on_connection)
            c->settings.on_connection(c->settings.ctx, 1, NULL);
    }
    arm_pump(c);
}

// Takes back calls if no byte of them has gone out. They go out on the next connection, before those that wait already.
static void take_back_unsent(struct cadre_client *c, struct uplink *u)
{
    struct list *front = c->waiting.next, *urgent_front = c->urgent.next;
    LIST_FOREACH(l, &u->sent) {
        struct pending *p = CONTAINER_OF(l, struct pending, link);
        struct blob *body = uplink_take_back(u, (uint32_t)p->id);
        struct record_call parts;
        struct err err = ERR_INIT;
        if (!body)
            continue;
        if (!p->args && record_call_decode(body->data, body->len, &parts, &err) == 0)
            p->args = blob_copy(parts.args, parts.args_len, NULL);
        blob_unref(body);
        p->lengthy = false;
        not_sent(p);
        list_remove(&p->link);
        list_insert_before(p->urgent ? urgent_front : front, &p->link);
        await_connection(c, p);
    }
}

static void on_down(void *ctx, struct uplink *u, const struct err *why, bool refused)
{
    struct cadre_client *c = ctx;
    if (u == c->uplinks.now)
        tell_down(c, why);
    if (!c->closing)
        take_back_unsent(c, u);
    fail_all(c, &u->sent, say_in_doubt, why, true);
    if (refused) {
        fail_all(c, &c->urgent, say_refused, why, false);
        fail_all(c, &c->waiting, say_refused, why, false);
    }
    if (waits_any(c))
        uplink_need(c->uplinks.now);
}

static void on_answer(void *ctx, struct uplink *u, const struct record *r)
{
    struct cadre_client *c = ctx;
    struct pending *p = pendings_of_wire(&c->calls, r->h.call);
    if (!p || p->sent != u) // its deadline came first
        return;
    if (p->lengthy) // refused before all of it was out?
        (void)uplink_withdraw(u, r->h.call);
    if (r->h.type == RECORD_RESULT) {
        answer(c, p, r, NULL);
    } else {
        cadre_client_error f;
        fault_decode(&f, r->body, r->len);
        answer(c, p, r, &f);
    }
    if (waits_any(c))
        arm_pump(c);
}

static void on_too_long(void *ctx, struct uplink *u, uint32_t call, const struct err *why)
{
    struct cadre_client *c = ctx;
    struct pending *p = pendings_of_wire(&c->calls, call);
    struct err err = *why;
    if (p && p->sent == u) {
        err_wrap(&err, "%s() ran, but its result is not taken", p->method);
        fail(c, p, &err, true);
    }
}

// Turning

static bool is_stale(const struct cadre_client *c)
{
    int64_t since = now_ms() - c->turned_ms;
    return since > STALE_MS || (since > QUIET_MS && uplink_ended(c->uplinks.now));
}

size_t client_turn(struct cadre_client *c, int64_t timeout_ms)
{
    uint64_t before = c->answered;
    if (c->turning || c->ended)
        return 0;
    c->stale = is_stale(c);
    c->turning = true;
    arm_deadline(c);
    uplinks_flush(&c->uplinks);
    loop_run_once(c->loop, c->answered == before ? MIN(timeout_ms, (int64_t)TURN_MS) : 0);
    if (uplinks_sweep(&c->uplinks))
        arm_pump(c);
    arm_deadline(c);
    c->turning = false;
    c->turned_ms = now_ms();
    return (size_t)(c->answered - before);
}

int64_t client_flush(struct cadre_client *c)
{
    if (c->ended || c->turning)
        return 0;
    c->turning = true;
    arm_deadline(c);
    uplinks_flush(&c->uplinks);
    c->turning = false;
    return loop_timeout_ms(c->loop);
}

uint32_t client_open_calls(const struct cadre_client *c)
{
    return c->calls.used - c->n_kept - c->n_urgent;
}

bool client_may_start(const struct cadre_client *c, bool urgent, struct err *err)
{
    uint32_t open = client_open_calls(c), most = MIN(c->settings.max_calls, (uint32_t)SETTINGS_CALLS_MAX - URGENT_MAX);
    uint32_t room = SETTINGS_CALLS_MAX - c->calls.used, reserved = urgent ? 0 : URGENT_MAX - c->n_urgent;
    if (c->closing)
        err_set(err, ERR_CANCELED, "the client is being closed");
    else if (urgent && c->n_urgent >= URGENT_MAX)
        err_set(err, ERR_LIMIT, "%u urgent calls have no answer yet; no more at a time", c->n_urgent);
    else if (!urgent && c->threads && open >= most)
        fault_refuse_now(err, "%u calls have no answer yet, the limit of this client (max_calls)", open);
    else if (!urgent && !c->threads && open + c->n_kept >= most)
        err_set(err, ERR_LIMIT,
                "%u calls have no answer yet and %u answers are kept, the limit of this client (max_calls)", open,
                c->n_kept);
    else if (room <= reserved)
        err_set(err, ERR_LIMIT, "%u calls have no answer yet and %u answers are kept; a client has room for %d",
                c->calls.used - c->n_kept, c->n_kept, SETTINGS_CALLS_MAX);
    return !err->code;
}

// *ret: where the arguments have to be written; NULL if they are used where they are.
static int reserve(struct cadre_client *c, struct pending *p, const struct arguments *args, char **ret, struct err *err)
{
    *ret = NULL;
    if (p->lends && !args->per_rank && (p->args = buffer_of(c, args->text, args->len)))
        return 0;
    if (p->lends && !args->per_rank && args->len > COPY_MAX && uplink_lends(c->uplinks.now, args->len)) {
        p->args = blob_lend(args->text, args->len);
        return 0;
    }
    p->args = uplink_blob(c->uplinks.now, args->len, p->urgent ? NULL : c->quota);
    if (!p->args)
        return fault_refuse_now(err, "%s(): no room for %zu bytes of arguments: %zu bytes are waiting already",
                                p->method, args->len, quota_used(c->quota));
    *ret = p->args->data;
    return 0;
}

int client_reserve(struct cadre_client *c, struct pending *p, const struct arguments *args, char **ret, struct err *err)
{
    *ret = NULL;
    if (p->urgent && args->len > COPY_MAX)
        return err_set(err, ERR_LIMIT, "%s(): %zu bytes of arguments are too long for an urgent call; at most %d",
                       p->method, args->len, COPY_MAX);
    return args->len > COPY_MAX || p->retry ? reserve(c, p, args, ret, err) : 0;
}

int client_submit(struct cadre_client *c, struct pending *p, const struct arguments *args, struct err *err)
{
    bool fresh = c->turning || !is_stale(c);
    bool first = list_empty(&c->urgent) && (p->urgent || list_empty(&c->waiting));
    bool now = fresh && first && may_send(c, p->urgent);
    char *out = NULL;
    if (!p->args && !now) {
        if (reserve(c, p, args, &out, err) < 0)
            return err->code;
    } else if (!p->args && args->per_rank) {
        buf_reset(&c->joined);
        buf_reserve(&c->joined, args->len);
        out = c->joined.data;
    }
    if (out)
        arguments_write(args, out);
    if (now)
        return send_call(c, p, args->per_rank && !p->args ? c->joined.data : args->text, args->len, err);
    wait_to_be_sent(c, p);
    return 0;
}

void client_abandon(struct cadre_client *c, struct pending *p)
{
    list_remove(&p->link);
    deadlines_del(&c->deadlines, &p->deadline);
    drop_request(p);
    pendings_give(&c->calls, p);
}

int client_cancel(struct cadre_client *c, uint64_t id, struct err *err)
{
    struct pending *p = pendings_find(&c->calls, id);
    if (!p || p->answered)
        return err_set(err, ERR_NOT_FOUND, "the call has been answered");
    if (p->sent && p->lengthy && uplink_withdraw(p->sent, (uint32_t)p->id)) { // no rank can have run it
        reclaim(p);
        not_sent(p);
    }
    if (p->sent) {
        uplink_cancel(p->sent, (uint32_t)p->id);
    } else { // the next turn answers it, so that no callback comes inside this function
        p->rests = false;
        deadlines_del(&c->deadlines, &p->deadline);
        list_remove(&p->link);
        list_append(&c->canceled, &p->link);
        loop_timer_arm(c->drop, 0);
    }
    return 0;
}

static void say_canceled(const struct pending *p, const struct err *why, struct err *err)
{
    (void)why;
    err_set(err, ERR_CANCELED, "%s() was canceled by its client before it was sent%s", p->method,
            pending_may_have_run(p) ? " again; it may have run" : "");
}

static void drop_canceled(void *ctx)
{
    struct cadre_client *c = ctx;
    fail_all(c, &c->canceled, say_canceled, NULL, false);
}

struct cadre_client *client_new(struct settings *settings)
{
    struct cadre_client *c = xcalloc(1, sizeof *c);
    c->settings = *settings;
    *settings = (struct settings){0};
    c->loop = loop_new();
    if (!c->settings.sleeps)
        loop_spin(c->loop);
    c->quota = quota_new(c->settings.max_bytes, NULL);
    quota_keep_body(c->quota, c->settings.max_body);
    c->pump = loop_timer_new(c->loop, pump, c);
    c->timer = loop_timer_new(c->loop, on_timer, c);
    c->drop = loop_timer_new(c->loop, drop_canceled, c);
    c->scratch = BUF_INIT(COPY_MAX + 1024 + CLIENT_MORE_MAX);
    c->joined = BUF_INIT(COPY_MAX + 1);
    c->result = BUF_INIT(c->settings.max_body);
    c->turned_ms = now_ms();
    list_init(&c->urgent);
    list_init(&c->waiting);
    list_init(&c->canceled);
    list_init(&c->resting);
    list_init(&c->finished);
    list_init(&c->handed_out);
    list_init(&c->notices);
    list_init(&c->buffers);
    rand_seed_system(&c->rand);
    pendings_init(&c->calls);
    const struct uplink_config config = {
        .loop = c->loop,
        .settings = &c->settings,
        .quota = c->quota,
        .on_answer = on_answer,
        .on_too_long = on_too_long,
        .on_change = on_change,
        .on_down = on_down,
        .ctx = c,
    };
    uplinks_init(&c->uplinks, &config);
    return c;
}

void client_end(struct cadre_client *c)
{
    int64_t end = now_ms() + GOODBYE_MS;
    c->closing = c->turning = true; // callbacks come, and no work begins
    fail_all(c, &c->urgent, say_closed, NULL, false);
    fail_all(c, &c->waiting, say_closed, NULL, false);
    fail_all(c, &c->canceled, say_canceled, NULL, false);
    fail_all(c, &c->resting, say_closed, NULL, false);
    fail_all(c, &c->uplinks.now->sent, say_closed, NULL, true);
    LIST_FOREACH(l, &c->uplinks.leaving)
        fail_all(c, &CONTAINER_OF(l, struct uplink, link)->sent, say_closed, NULL, true);
    c->settings.on_connection = NULL;
    c->settings.on_output = NULL;
    uplinks_end(&c->uplinks, "the client ends");
    while (!uplinks_gone(&c->uplinks) && now_ms() < end)
        loop_run_once(c->loop, end - now_ms());
    c->turning = false;
    c->ended = true;
}

void client_free(struct cadre_client *c)
{
    if (!c->ended)
        client_end(c);
    uplinks_done(&c->uplinks);
    futures_done(c);
    buffers_done(c);
    blob_unref(c->returned);
    loop_timer_free(c->pump);
    loop_timer_free(c->timer);
    loop_timer_free(c->drop);
    loop_free(c->loop);
    deadlines_done(&c->deadlines);
    pendings_done(&c->calls);
    quota_unref(c->quota);
    buf_done(&c->scratch);
    buf_done(&c->joined);
    buf_done(&c->result);
    settings_done(&c->settings);
    free(c);
}
