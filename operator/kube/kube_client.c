// SPDX-License-Identifier: Apache-2.0
// What the API server's rules add to plain HTTP: an order of waiting, deadlines, retries, the token, errors for people.
// A call is in exactly one list, the one of its state. Exchanges are started and aborted only in client_pump(), which
// runs from the loop: so kube_send() and kube_cancel() may be called from anywhere, also from data().
#include "operator/kube/kube_client.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "operator/api/status.h"
#include "operator/kube/credentials.h"
#include "operator/kube/fault.h"
#include "operator/kube/http.h"
#include "operator/kube/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENT_IN_FLIGHT = 32,
    CLIENT_MAX_BODY = 16 * 1024 * 1024,
    CLIENT_TIMEOUT_MS = 30 * 1000,
    CLIENT_MAX_CALLS = 16384,
    CLIENT_MAX_BYTES = 64 * 1024 * 1024, // of all requests together
    CLIENT_MAX_RETRIES = 5,
    CLIENT_RETRY_AFTER_MS = 1000,
};

enum call_state {
    CALL_WAITING, // for its turn
    CALL_SENT,    // has an exchange
    CALL_PAUSED,  // until Retry-After has passed
    CALL_ENDING,  // its failure is to be reported; may still have an exchange
    CALL_STATES,
};

struct call {
    struct list link;
    struct kube_client *client;
    enum call_state state;
    uint64_t id;
    struct http_message message;
    const char *what; // "POST pods ml/llama-0", for messages; "" if they say so themselves
    size_t size;      // of this block, which holds the message and the texts (but a lent body) behind the struct
    kube_done_fn done;
    struct kube_stream_ops stream; // of a stream, else NULLs
    bool own_connection;
    void *ctx;
    int64_t timeout_ms;  // of a stream: how long it may be silent, 0 = for ever
    int64_t deadline_ms; // mono; every byte of a stream moves it
    int64_t ready_ms;    // CALL_PAUSED
    int retries;
    bool urgent, decided;
    bool reauthenticated;
    bool faulty;               // a write at which the process may be told to die
    int write;                 // its number then, 0 = not sent yet
    uint32_t token_generation; // that it was sent with
    struct http_exchange *exchange;
    struct err *failure;
};

struct kube_client {
    struct loop *loop;
    const struct kube_config *config;
    struct kube_client_options options;
    char *user_agent;
    struct http *http;
    struct token token;
    struct list lists[CALL_STATES];
    uint64_t last_id;
    int calls, streams; // alive; a stream is not one of the calls
    int sent;           // calls with an exchange
    size_t bytes;
    struct loop_timer *pump, *alarm;
    int64_t alarm_ms; // when `alarm` fires; INT64_MAX = never
    bool closing;
};

static bool is_stream(const struct call *call)
{
    return call->stream.end != NULL;
}

static void call_move(struct call *call, enum call_state state, struct list *before)
{
    list_remove(&call->link);
    list_insert_before(before, &call->link);
    call->state = state;
}

static void call_append(struct call *call, enum call_state state)
{
    call_move(call, state, &call->client->lists[state]);
}

static void call_wait_first(struct call *call)
{
    call_move(call, CALL_WAITING, call->client->lists[CALL_WAITING].next);
}

// --- ends

static void call_finish(struct call *call, const struct kube_response *response, const struct err *err)
{
    struct kube_client *c = call->client;
    list_remove(&call->link);
    c->bytes -= call->size;
    if (is_stream(call)) {
        c->streams--;
        call->stream.end(call->ctx, err);
    } else {
        c->calls--;
        call->done(call->ctx, response, err);
    }
    free(call->failure);
    free(call);
}

// To be reported by the pump. The message gets the call's name in front.
static void call_fail(struct call *call, const struct err *err)
{
    call->failure = xmalloc(sizeof *call->failure);
    *call->failure = *err;
    if (call->what[0])
        err_wrap(call->failure, "%s", call->what);
    call_append(call, CALL_ENDING);
    loop_timer_arm(call->client->pump, 0);
}

static void report_ending(struct kube_client *c)
{
    struct list *ending = &c->lists[CALL_ENDING];
    while (!list_empty(ending)) {
        struct call *call = CONTAINER_OF(ending->next, struct call, link);
        if (call->exchange) {
            if (call->failure->code == ERR_TIMEOUT)
                http_distrust(c->http);
            http_abort(TAKE_PTR(call->exchange));
            c->sent -= !is_stream(call);
        }
        call_finish(call, NULL, call->failure);
    }
}

// --- one alarm for all deadlines

static void alarm_at(struct kube_client *c, int64_t ms)
{
    if (ms >= c->alarm_ms)
        return;
    c->alarm_ms = ms;
    loop_timer_arm(c->alarm, MAX(ms - loop_now_ms(c->loop), 0));
}

static void call_expire(struct call *call)
{
    struct kube_client *c = call->client;
    struct err err = ERR_INIT;
    double s = (double)call->timeout_ms / 1000;
    if (is_stream(call))
        err_set(&err, ERR_TIMEOUT, "%s sent nothing for %g s", c->config->server, s);
    else if (call->state == CALL_WAITING)
        err_set(&err, ERR_TIMEOUT, "not sent within %g s: %d requests are in progress", s, c->calls);
    else
        err_set(&err, ERR_TIMEOUT, "no answer from %s within %g s", c->config->server, s);
    call_fail(call, &err);
}

// Where a call waits that comes back: behind those that came back before it, in front of those that were never sent.
static struct list *first_fresh(struct kube_client *c)
{
    LIST_FOREACH(l, &c->lists[CALL_WAITING]) {
        const struct call *call = CONTAINER_OF(l, struct call, link);
        if (!call->urgent && !call->retries && !call->reauthenticated)
            return l;
    }
    return &c->lists[CALL_WAITING];
}

// A deadline that has moved meanwhile only sets the next alarm, so that moving one costs nothing.
static void on_alarm(void *ctx)
{
    struct kube_client *c = ctx;
    int64_t now = loop_now_ms(c->loop), next = INT64_MAX;
    for (int state = 0; state < CALL_ENDING; state++) {
        struct list *before = state == CALL_PAUSED ? first_fresh(c) : NULL;
        LIST_FOREACH(l, &c->lists[state]) {
            struct call *call = CONTAINER_OF(l, struct call, link);
            int64_t at = state == CALL_PAUSED ? call->ready_ms : call->deadline_ms;
            if (at > now) {
                next = MIN(next, at);
            } else if (state == CALL_PAUSED) {
                next = MIN(next, call->deadline_ms);
                call_move(call, CALL_WAITING, before);
                loop_timer_arm(c->pump, 0);
            } else {
                call_expire(call);
            }
        }
    }
    c->alarm_ms = INT64_MAX;
    if (next < INT64_MAX)
        alarm_at(c, next);
}

// --- answers

static void call_pause(struct call *call, int64_t ms)
{
    call->retries++;
    call->ready_ms = loop_now_ms(call->client->loop) + ms;
    call_append(call, CALL_PAUSED);
    alarm_at(call->client, call->ready_ms);
}

// True if the call goes on with a token that the server has not refused yet.
static bool call_reauthenticate(struct call *call)
{
    struct kube_client *c = call->client;
    if (!c->token.file || call->reauthenticated)
        return false;
    call->reauthenticated = true;
    if (call->token_generation == c->token.generation) {
        if (!token_refresh(&c->token, loop_now_ms(c->loop)))
            return false;
        http_set_token(c->http, c->token.text);
    }
    call_wait_first(call);
    return true;
}

static bool call_retry(struct call *call, const struct http_result *r)
{
    if (r->status == 401)
        return call_reauthenticate(call);
    if ((r->status != 429 && r->status != 503) || is_stream(call) || call->retries >= CLIENT_MAX_RETRIES)
        return false;
    int64_t wait = r->retry_after_ms ? r->retry_after_ms : CLIENT_RETRY_AFTER_MS;
    if (loop_now_ms(call->client->loop) + wait >= call->deadline_ms)
        return false;
    call_pause(call, wait);
    return true;
}

static void call_refused(struct call *call, const struct http_result *r)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    const struct kube_config *config = call->client->config;
    api_status_err(r->status, r->body, r->len, &err);
    err.retry_after_ms = MAX(err.retry_after_ms, r->retry_after_ms);
    if (r->status == 401) {
        if (credentials_check(config, loop_wall_ms(call->client->loop), &why) == 0)
            err_set(&why, ERR_UNAUTHORIZED, "have they expired?");
        err_wrap(&err, "%s: the API server does not accept the credentials of %s; %s", call->what, config->source,
                 why.msg);
    } else {
        err_wrap(&err, "%s", call->what);
    }
    call_finish(call, NULL, &err);
}

static void call_broken(struct call *call, const struct err *why)
{
    struct err err = *why;
    err_set(&err, why->code, "%s: %s (%s)", call->what, why->msg, call->client->config->source);
    call_finish(call, NULL, &err);
}

static void call_answered(struct call *call, const struct http_result *r)
{
    struct kube_response response = {r->status, r->body, r->len};
    if (r->err->code)
        call_broken(call, r->err);
    else if (r->status >= 200 && r->status < 300)
        call_finish(call, &response, &(struct err){0});
    else if (!call_retry(call, r))
        call_refused(call, r);
}

static bool on_data(void *ctx, const char *bytes, size_t n)
{
    struct call *call = ctx;
    if (call->state != CALL_SENT)
        return false;
    if (call->timeout_ms)
        call->deadline_ms = loop_now_ms(call->client->loop) + call->timeout_ms;
    call->stream.data(call->ctx, bytes, n);
    return call->state == CALL_SENT;
}

static void client_pump(void *ctx);

static void on_done(void *ctx, const struct http_result *r)
{
    struct call *call = ctx;
    struct kube_client *c = call->client;
    call->exchange = NULL;
    c->sent -= !is_stream(call);
    if (c->options.observe)
        c->options.observe(c->options.observe_ctx, call->message.method, r->err->code ? 0 : r->status, r->micros);
    if (call->write)
        fault_write_answered(call->write);
    if (call->state == CALL_SENT) // else it was canceled from its own data()
        call_answered(call, r);
    client_pump(c);
}

// --- sending

static void call_start(struct call *call)
{
    static const struct http_ops short_ops = {.done = on_done}, stream_ops = {.data = on_data, .done = on_done};
    struct kube_client *c = call->client;
    if (token_due(&c->token, loop_now_ms(c->loop)) && token_refresh(&c->token, loop_now_ms(c->loop)))
        http_set_token(c->http, c->token.text);
    if (call->faulty && !call->write)
        call->write = fault_write_begins();
    call->token_generation = c->token.generation;
    call_append(call, CALL_SENT);
    c->sent += !is_stream(call);
    const struct http_ops *ops = is_stream(call) ? &stream_ops : &short_ops;
    call->exchange = http_start(c->http, &call->message, call->own_connection, ops, call);
}

static void call_cancel(struct call *call)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_CANCELED, "%s", err_text(ERR_CANCELED));
    call_fail(call, &err);
}

bool kube_may_decide(const struct kube_client *c)
{
    return !c->options.may_decide || c->options.may_decide(c->options.may_decide_ctx);
}

static void client_pump(void *ctx)
{
    struct kube_client *c = ctx;
    struct list *waiting = &c->lists[CALL_WAITING];
    report_ending(c);
    while (!list_empty(waiting)) {
        struct call *call = CONTAINER_OF(waiting->next, struct call, link);
        if (!is_stream(call) && c->sent >= c->options.max_in_flight)
            break;
        if (call->decided && !kube_may_decide(c))
            call_cancel(call);
        else
            call_start(call);
    }
}

static char *append(char **end, const char *text, size_t n)
{
    char *at = *end;
    memcpy(at, text, n);
    at[n] = '\0';
    *end += n + 1;
    return at;
}

static struct call *call_new(struct kube_client *c, const struct http_message *m, bool lends_body, const char *what)
{
    size_t path_len = strlen(m->path), what_len = strlen(what);
    bool copies = m->body && !lends_body;
    size_t size = sizeof(struct call) + path_len + what_len + (copies ? m->body_len : 0) + 3;
    struct call *call = xmalloc(size);
    char *end = (char *)(call + 1);
    *call = (struct call){.client = c, .id = ++c->last_id, .size = size, .message = *m};
    call->message.path = append(&end, m->path, path_len);
    call->message.body = copies ? append(&end, m->body, m->body_len) : m->body;
    call->what = append(&end, what, what_len);
    list_init(&call->link);
    c->bytes += size;
    return call;
}

// What cannot be sent fails later, from the loop, as everything else does. Streams do not wait behind what may be
// thousands of writes.
static uint64_t call_queue(struct call *call, const struct err *err, bool urgent)
{
    struct kube_client *c = call->client;
    struct err limit = ERR_INIT;
    if (is_stream(call))
        c->streams++;
    else
        c->calls++;
    if (c->calls + c->streams > CLIENT_MAX_CALLS || c->bytes > CLIENT_MAX_BYTES)
        err_set(&limit, ERR_LIMIT, "%d requests of %zu bytes are in progress, which is the limit", c->calls, c->bytes);
    call->deadline_ms = call->timeout_ms ? loop_now_ms(c->loop) + call->timeout_ms : INT64_MAX;
    if (err->code || limit.code) {
        call_fail(call, err->code ? err : &limit);
        return call->id;
    }
    call->urgent = urgent;
    if (urgent)
        call_wait_first(call);
    else
        call_append(call, CALL_WAITING);
    alarm_at(c, call->deadline_ms);
    loop_timer_arm(c->pump, 0);
    return call->id;
}

// NULL: the client is being taken down.
static struct call *call_render(struct kube_client *c, const struct request *r, void *ctx, struct err *err)
{
    char what[512];
    if (c->closing)
        return NULL;
    struct arena arena = ARENA_INIT;
    struct http_message m = {.method = verb_name(r->verb), .path = ""};
    request_describe(r, what, sizeof what);
    if (request_render(r, &arena, &m, err) < 0)
        what[0] = '\0'; // the message names the object already
    struct call *call = call_new(c, &m, r->lends_body && m.body == r->body, what);
    call->ctx = ctx;
    arena_done(&arena);
    return call;
}

uint64_t kube_send(struct kube_client *c, const struct request *r, int64_t timeout_ms, kube_done_fn done, void *ctx)
{
    struct err err = ERR_INIT;
    struct call *call = call_render(c, r, ctx, &err);
    if (!call)
        return 0;
    call->done = done;
    call->faulty = fault_counts(r);
    call->decided = r->decided;
    call->timeout_ms = timeout_ms > 0 ? timeout_ms : CLIENT_TIMEOUT_MS;
    return call_queue(call, &err, false);
}

uint64_t kube_stream(struct kube_client *c, const struct request *r, int64_t idle_ms, const struct kube_stream_ops *ops,
                     void *ctx)
{
    struct err err = ERR_INIT;
    struct call *call = call_render(c, r, ctx, &err);
    if (!call)
        return 0;
    call->stream = *ops;
    call->own_connection = r->verb == VERB_WATCH;
    call->timeout_ms = idle_ms;
    return call_queue(call, &err, true);
}

uint64_t kube_get_path(struct kube_client *c, const char *path, int64_t timeout_ms, kube_done_fn done, void *ctx)
{
    char what[256];
    if (c->closing)
        return 0;
    snprintf(what, sizeof what, "GET %s", path);
    struct call *call = call_new(c, &(struct http_message){.method = "GET", .path = path}, false, what);
    call->done = done;
    call->ctx = ctx;
    call->timeout_ms = timeout_ms > 0 ? timeout_ms : CLIENT_TIMEOUT_MS;
    return call_queue(call, &(struct err){0}, true);
}

void kube_cancel(struct kube_client *c, uint64_t id)
{
    for (int state = 0; state < CALL_ENDING; state++) {
        LIST_FOREACH(l, &c->lists[state]) {
            struct call *call = CONTAINER_OF(l, struct call, link);
            if (call->id == id) {
                call_cancel(call);
                return;
            }
        }
    }
}

void kube_cancel_decided(struct kube_client *c)
{
    for (int state = 0; state < CALL_ENDING; state++) {
        LIST_FOREACH(l, &c->lists[state]) {
            struct call *call = CONTAINER_OF(l, struct call, link);
            if (call->decided)
                call_cancel(call);
        }
    }
}

int kube_in_flight(const struct kube_client *c)
{
    return c->calls;
}

uint64_t kube_requests(const struct kube_client *c)
{
    return c->last_id;
}

// --- life

static int client_open(struct kube_client *c, struct err *err)
{
    const struct kube_config *config = c->config;
    int r = credentials_check(config, loop_wall_ms(c->loop), err);
    if (r == 0)
        r = token_init(&c->token, config->token, config->token_file, loop_now_ms(c->loop), err);
    if (r < 0)
        return err_wrap(err, "%s", config->source);
    r = http_new(c->loop, config, c->user_agent, c->options.max_body, &c->http, err);
    if (r == 0)
        http_set_token(c->http, c->token.text);
    return r;
}

int kube_client_new(struct loop *loop, const struct kube_config *config, const struct kube_client_options *options,
                    struct kube_client **ret, struct err *err)
{
    struct kube_client *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->config = config;
    if (options)
        c->options = *options;
    if (c->options.max_in_flight <= 0)
        c->options.max_in_flight = CLIENT_IN_FLIGHT;
    if (!c->options.max_body)
        c->options.max_body = CLIENT_MAX_BODY;
    c->user_agent = xstrdup(c->options.user_agent ? c->options.user_agent : "cadre-operator/" CADRE_VERSION);
    for (int i = 0; i < CALL_STATES; i++)
        list_init(&c->lists[i]);
    c->pump = loop_timer_new(loop, client_pump, c);
    c->alarm = loop_timer_new(loop, on_alarm, c);
    c->alarm_ms = INT64_MAX;
    int r = client_open(c, err);
    if (r < 0)
        kube_client_free(c);
    else
        *ret = c;
    return r;
}

void kube_client_free(struct kube_client *c)
{
    if (!c)
        return;
    c->closing = true;
    for (int state = 0; state < CALL_ENDING; state++)
        while (!list_empty(&c->lists[state]))
            call_cancel(CONTAINER_OF(c->lists[state].next, struct call, link));
    report_ending(c);
    loop_timer_free(c->pump);
    loop_timer_free(c->alarm);
    http_free(c->http);
    token_done(&c->token);
    free(c->user_agent);
    free(c);
}
