// SPDX-License-Identifier: Apache-2.0
// Adds the rules of the API server to plain HTTP: an order of waiting, deadlines, retries, the token, errors for
// people. A transaction is a request from its start until its callback. It is in exactly one list, the list of its
// state. Only client_pump() starts and aborts exchanges, and it runs from the loop. So kube_send() and kube_cancel()
// may be called from anywhere, also from data().
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

enum transaction_state {
    TRANSACTION_WAITING, // until it can be sent
    TRANSACTION_SENT,    // has an exchange
    TRANSACTION_PAUSED,  // until Retry-After has passed
    TRANSACTION_ENDING,  // the pump will report its failure; may still have an exchange
    TRANSACTION_STATES,
};

struct transaction {
    struct list link;
    struct kube_client *client;
    enum transaction_state state;
    uint64_t id;
    struct http_message message;
    const char *what; // "POST pods ml/llama-0", for messages; "" if the message names the object already
    size_t size;      // of this block: the struct, then the texts of the message, without a lent body
    kube_done_fn done;
    struct kube_stream_ops stream; // of a stream, else NULLs
    bool own_connection;
    void *ctx;
    int64_t timeout_ms;  // for the whole request; how long a stream may be silent, 0 = for ever
    int64_t deadline_ms; // mono; every byte of a stream moves it
    int64_t ready_ms;    // when TRANSACTION_PAUSED ends
    int retries;
    bool urgent, decided;
    bool reauthenticated;
    bool faulty;               // a write that counts for fault.h
    int write;                 // the number of that write, 0 = not sent yet
    uint32_t token_generation; // of the token that it was sent with
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
    struct list lists[TRANSACTION_STATES];
    uint64_t last_id;
    int requests, streams; // transactions; a stream does not count as a request
    int sent;              // requests with an exchange
    size_t bytes;
    struct loop_timer *pump, *alarm;
    int64_t alarm_ms; // when `alarm` fires; INT64_MAX = never
    bool closing;
};

static bool is_stream(const struct transaction *t)
{
    return t->stream.end != NULL;
}

static void transaction_move(struct transaction *t, enum transaction_state state, struct list *before)
{
    list_remove(&t->link);
    list_insert_before(before, &t->link);
    t->state = state;
}

static void transaction_append(struct transaction *t, enum transaction_state state)
{
    transaction_move(t, state, &t->client->lists[state]);
}

static void transaction_wait_first(struct transaction *t)
{
    transaction_move(t, TRANSACTION_WAITING, t->client->lists[TRANSACTION_WAITING].next);
}

// --- ends

static void transaction_finish(struct transaction *t, const struct kube_response *response, const struct err *err)
{
    struct kube_client *c = t->client;
    list_remove(&t->link);
    c->bytes -= t->size;
    if (is_stream(t)) {
        c->streams--;
        t->stream.end(t->ctx, err);
    } else {
        c->requests--;
        t->done(t->ctx, response, err);
    }
    free(t->failure);
    free(t);
}

// The pump will report the failure. Adds the name of the transaction in front of the message.
static void transaction_fail(struct transaction *t, const struct err *err)
{
    t->failure = xmalloc(sizeof *t->failure);
    *t->failure = *err;
    if (t->what[0])
        err_wrap(t->failure, "%s", t->what);
    transaction_append(t, TRANSACTION_ENDING);
    loop_timer_arm(t->client->pump, 0);
}

static void report_ending(struct kube_client *c)
{
    struct list *ending = &c->lists[TRANSACTION_ENDING];
    while (!list_empty(ending)) {
        struct transaction *t = CONTAINER_OF(ending->next, struct transaction, link);
        if (t->exchange) {
            if (t->failure->code == ERR_TIMEOUT)
                http_distrust(c->http);
            http_abort(TAKE_PTR(t->exchange));
            c->sent -= !is_stream(t);
        }
        transaction_finish(t, NULL, t->failure);
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

static void transaction_expire(struct transaction *t)
{
    struct kube_client *c = t->client;
    struct err err = ERR_INIT;
    double s = (double)t->timeout_ms / 1000;
    if (is_stream(t))
        err_set(&err, ERR_TIMEOUT, "%s sent nothing for %g s", c->config->server, s);
    else if (t->state == TRANSACTION_WAITING)
        err_set(&err, ERR_TIMEOUT, "not sent within %g s: %d requests are in progress", s, c->requests);
    else
        err_set(&err, ERR_TIMEOUT, "no answer from %s within %g s", c->config->server, s);
    transaction_fail(t, &err);
}

// Returns the place of a transaction that waits again: after those that came back earlier, before those that were never
// sent.
static struct list *first_fresh(struct kube_client *c)
{
    LIST_FOREACH(l, &c->lists[TRANSACTION_WAITING]) {
        const struct transaction *t = CONTAINER_OF(l, struct transaction, link);
        if (!t->urgent && !t->retries && !t->reauthenticated)
            return l;
    }
    return &c->lists[TRANSACTION_WAITING];
}

// If a deadline has moved meanwhile, this only sets the next alarm. So moving a deadline costs nothing.
static void on_alarm(void *ctx)
{
    struct kube_client *c = ctx;
    int64_t now = loop_now_ms(c->loop), next = INT64_MAX;
    for (int state = 0; state < TRANSACTION_ENDING; state++) {
        struct list *before = state == TRANSACTION_PAUSED ? first_fresh(c) : NULL;
        LIST_FOREACH(l, &c->lists[state]) {
            struct transaction *t = CONTAINER_OF(l, struct transaction, link);
            int64_t at = state == TRANSACTION_PAUSED ? t->ready_ms : t->deadline_ms;
            if (at > now) {
                next = MIN(next, at);
            } else if (state == TRANSACTION_PAUSED) {
                next = MIN(next, t->deadline_ms);
                transaction_move(t, TRANSACTION_WAITING, before);
                loop_timer_arm(c->pump, 0);
            } else {
                transaction_expire(t);
            }
        }
    }
    c->alarm_ms = INT64_MAX;
    if (next < INT64_MAX)
        alarm_at(c, next);
}

// --- answers

static void transaction_pause(struct transaction *t, int64_t ms)
{
    t->retries++;
    t->ready_ms = loop_now_ms(t->client->loop) + ms;
    transaction_append(t, TRANSACTION_PAUSED);
    alarm_at(t->client, t->ready_ms);
}

// Returns true if the transaction continues with a token that the server has not refused yet.
static bool transaction_reauthenticate(struct transaction *t)
{
    struct kube_client *c = t->client;
    if (!c->token.file || t->reauthenticated)
        return false;
    t->reauthenticated = true;
    if (t->token_generation == c->token.generation) {
        if (!token_refresh(&c->token, loop_now_ms(c->loop)))
            return false;
        http_set_token(c->http, c->token.text);
    }
    transaction_wait_first(t);
    return true;
}

static bool transaction_retry(struct transaction *t, const struct http_result *r)
{
    if (r->status == 401)
        return transaction_reauthenticate(t);
    if ((r->status != 429 && r->status != 503) || is_stream(t) || t->retries >= CLIENT_MAX_RETRIES)
        return false;
    int64_t wait = r->retry_after_ms ? r->retry_after_ms : CLIENT_RETRY_AFTER_MS;
    if (loop_now_ms(t->client->loop) + wait >= t->deadline_ms)
        return false;
    transaction_pause(t, wait);
    return true;
}

static void transaction_refused(struct transaction *t, const struct http_result *r)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    const struct kube_config *config = t->client->config;
    api_status_err(r->status, r->body, r->len, &err);
    err.retry_after_ms = MAX(err.retry_after_ms, r->retry_after_ms);
    if (r->status == 401) {
        if (credentials_check(config, loop_wall_ms(t->client->loop), &why) == 0)
            err_set(&why, ERR_UNAUTHORIZED, "have they expired?");
        err_wrap(&err, "%s: the API server does not accept the credentials of %s; %s", t->what, config->source,
                 why.msg);
    } else {
        err_wrap(&err, "%s", t->what);
    }
    transaction_finish(t, NULL, &err);
}

static void transaction_broken(struct transaction *t, const struct err *why)
{
    struct err err = *why;
    err_set(&err, why->code, "%s: %s (%s)", t->what, why->msg, t->client->config->source);
    transaction_finish(t, NULL, &err);
}

static void transaction_answered(struct transaction *t, const struct http_result *r)
{
    struct kube_response response = {r->status, r->body, r->len};
    if (r->err->code)
        transaction_broken(t, r->err);
    else if (r->status >= 200 && r->status < 300)
        transaction_finish(t, &response, &(struct err){0});
    else if (!transaction_retry(t, r))
        transaction_refused(t, r);
}

static bool on_data(void *ctx, const char *bytes, size_t n)
{
    struct transaction *t = ctx;
    if (t->state != TRANSACTION_SENT)
        return false;
    if (t->timeout_ms)
        t->deadline_ms = loop_now_ms(t->client->loop) + t->timeout_ms;
    t->stream.data(t->ctx, bytes, n);
    return t->state == TRANSACTION_SENT;
}

static void client_pump(void *ctx);

static void on_done(void *ctx, const struct http_result *r)
{
    struct transaction *t = ctx;
    struct kube_client *c = t->client;
    t->exchange = NULL;
    c->sent -= !is_stream(t);
    if (c->options.observe)
        c->options.observe(c->options.observe_ctx, t->message.method, r->err->code ? 0 : r->status, r->micros);
    if (t->write)
        fault_write_answered(t->write);
    if (t->state == TRANSACTION_SENT) // else its own data() has canceled it
        transaction_answered(t, r);
    client_pump(c);
}

// --- sending

static void transaction_start(struct transaction *t)
{
    static const struct http_ops short_ops = {.done = on_done}, stream_ops = {.data = on_data, .done = on_done};
    struct kube_client *c = t->client;
    if (token_due(&c->token, loop_now_ms(c->loop)) && token_refresh(&c->token, loop_now_ms(c->loop)))
        http_set_token(c->http, c->token.text);
    if (t->faulty && !t->write)
        t->write = fault_write_begins();
    t->token_generation = c->token.generation;
    transaction_append(t, TRANSACTION_SENT);
    c->sent += !is_stream(t);
    const struct http_ops *ops = is_stream(t) ? &stream_ops : &short_ops;
    t->exchange = http_start(c->http, &t->message, t->own_connection, ops, t);
}

static void transaction_cancel(struct transaction *t)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_CANCELED, "%s", err_text(ERR_CANCELED));
    transaction_fail(t, &err);
}

bool kube_may_decide(const struct kube_client *c)
{
    return !c->options.may_decide || c->options.may_decide(c->options.may_decide_ctx);
}

static void client_pump(void *ctx)
{
    struct kube_client *c = ctx;
    struct list *waiting = &c->lists[TRANSACTION_WAITING];
    report_ending(c);
    while (!list_empty(waiting)) {
        struct transaction *t = CONTAINER_OF(waiting->next, struct transaction, link);
        if (!is_stream(t) && c->sent >= c->options.max_in_flight)
            break;
        if (t->decided && !kube_may_decide(c))
            transaction_cancel(t);
        else
            transaction_start(t);
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

static struct transaction *transaction_new(struct kube_client *c, const struct http_message *m, bool lends_body,
                                           const char *what)
{
    size_t path_len = strlen(m->path), what_len = strlen(what);
    bool copies = m->body && !lends_body;
    size_t size = sizeof(struct transaction) + path_len + what_len + (copies ? m->body_len : 0) + 3;
    struct transaction *t = xmalloc(size);
    char *end = (char *)(t + 1);
    *t = (struct transaction){.client = c, .id = ++c->last_id, .size = size, .message = *m};
    t->message.path = append(&end, m->path, path_len);
    t->message.body = copies ? append(&end, m->body, m->body_len) : m->body;
    t->what = append(&end, what, what_len);
    list_init(&t->link);
    c->bytes += size;
    return t;
}

// A request that cannot be sent fails later, from the loop, as all others do. A stream goes first, because thousands of
// writes may wait.
static uint64_t transaction_queue(struct transaction *t, const struct err *err, bool urgent)
{
    struct kube_client *c = t->client;
    struct err limit = ERR_INIT;
    if (is_stream(t))
        c->streams++;
    else
        c->requests++;
    if (c->requests + c->streams > CLIENT_MAX_CALLS || c->bytes > CLIENT_MAX_BYTES)
        err_set(&limit, ERR_LIMIT, "%d requests of %zu bytes are in progress, which is the limit", c->requests,
                c->bytes);
    t->deadline_ms = t->timeout_ms ? loop_now_ms(c->loop) + t->timeout_ms : INT64_MAX;
    if (err->code || limit.code) {
        transaction_fail(t, err->code ? err : &limit);
        return t->id;
    }
    t->urgent = urgent;
    if (urgent)
        transaction_wait_first(t);
    else
        transaction_append(t, TRANSACTION_WAITING);
    alarm_at(c, t->deadline_ms);
    loop_timer_arm(c->pump, 0);
    return t->id;
}

// Returns NULL if kube_client_free() is running.
static struct transaction *transaction_render(struct kube_client *c, const struct kube_request *r, void *ctx,
                                              struct err *err)
{
    char what[512];
    if (c->closing)
        return NULL;
    struct arena arena = ARENA_INIT;
    struct http_message m = {.method = verb_name(r->verb), .path = ""};
    request_describe(r, what, sizeof what);
    if (request_render(r, &arena, &m, err) < 0)
        what[0] = '\0'; // the message names the object already
    struct transaction *t = transaction_new(c, &m, r->lends_body && m.body == r->body, what);
    t->ctx = ctx;
    arena_done(&arena);
    return t;
}

uint64_t kube_send(struct kube_client *c, const struct kube_request *r, int64_t timeout_ms, kube_done_fn done,
                   void *ctx)
{
    struct err err = ERR_INIT;
    struct transaction *t = transaction_render(c, r, ctx, &err);
    if (!t)
        return 0;
    t->done = done;
    t->faulty = fault_counts(r);
    t->decided = r->decided;
    t->timeout_ms = timeout_ms > 0 ? timeout_ms : CLIENT_TIMEOUT_MS;
    return transaction_queue(t, &err, false);
}

uint64_t kube_stream(struct kube_client *c, const struct kube_request *r, int64_t idle_ms,
                     const struct kube_stream_ops *ops, void *ctx)
{
    struct err err = ERR_INIT;
    struct transaction *t = transaction_render(c, r, ctx, &err);
    if (!t)
        return 0;
    t->stream = *ops;
    t->own_connection = r->verb == VERB_WATCH;
    t->timeout_ms = idle_ms;
    return transaction_queue(t, &err, true);
}

uint64_t kube_get_path(struct kube_client *c, const char *path, int64_t timeout_ms, kube_done_fn done, void *ctx)
{
    char what[256];
    if (c->closing)
        return 0;
    snprintf(what, sizeof what, "GET %s", path);
    struct transaction *t = transaction_new(c, &(struct http_message){.method = "GET", .path = path}, false, what);
    t->done = done;
    t->ctx = ctx;
    t->timeout_ms = timeout_ms > 0 ? timeout_ms : CLIENT_TIMEOUT_MS;
    return transaction_queue(t, &(struct err){0}, true);
}

void kube_cancel(struct kube_client *c, uint64_t id)
{
    for (int state = 0; state < TRANSACTION_ENDING; state++) {
        LIST_FOREACH(l, &c->lists[state]) {
            struct transaction *t = CONTAINER_OF(l, struct transaction, link);
            if (t->id == id) {
                transaction_cancel(t);
                return;
            }
        }
    }
}

void kube_cancel_decided(struct kube_client *c)
{
    for (int state = 0; state < TRANSACTION_ENDING; state++) {
        LIST_FOREACH(l, &c->lists[state]) {
            struct transaction *t = CONTAINER_OF(l, struct transaction, link);
            if (t->decided)
                transaction_cancel(t);
        }
    }
}

int kube_in_flight(const struct kube_client *c)
{
    return c->requests;
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
    for (int i = 0; i < TRANSACTION_STATES; i++)
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
    for (int state = 0; state < TRANSACTION_ENDING; state++)
        while (!list_empty(&c->lists[state]))
            transaction_cancel(CONTAINER_OF(c->lists[state].next, struct transaction, link));
    report_ending(c);
    loop_timer_free(c->pump);
    loop_timer_free(c->alarm);
    http_free(c->http);
    token_done(&c->token);
    free(c->user_agent);
    free(c);
}
