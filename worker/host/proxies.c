// SPDX-License-Identifier: Apache-2.0
#include "worker/host/proxies.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/ws/ws_replicas.h"
#include "worker/host/control_records.h"

#include <stdio.h>
#include <stdlib.h>

struct proxies {
    struct proxies_config config;
    struct loop *loop;
    struct rand rand;
    struct ws_tls *tls; // for the named proxies
    struct host_session *named[HOST_OPTIONS_CONNECT_MAX];
    size_t n_named;
    struct ws_replicas *replicas; // NULL = proxies are named on the command line
    size_t n_stopping;
};

static void on_ready(void *ctx)
{
    struct proxies *p = ctx;
    p->config.on_ready(p->config.ctx);
}

static void on_lost(void *ctx, const struct err *err, int64_t retry_ms, bool first)
{
    struct proxies *p = ctx;
    char line[sizeof err->msg + 64];
    snprintf(line, sizeof line, "%s; dialing again in %lld ms", err->msg, (long long)retry_ms);
    if (first)
        p->config.on_trouble(p->config.ctx, line);
    if (p->replicas && first)
        ws_replicas_look_soon(p->replicas);
}

static void on_over(void *ctx, const struct err *err)
{
    struct proxies *p = ctx;
    p->config.on_over(p->config.ctx, err->msg);
}

static void on_stopped(void *ctx)
{
    struct proxies *p = ctx;
    if (--p->n_stopping == 0)
        p->config.on_stopped(p->config.ctx);
}

static struct host_session_config common(struct proxies *p)
{
    struct host_session_config c = p->config.session;
    c.group = p->config.options->group;
    c.ticket = p->config.options->ticket;
    c.attempt = p->config.options->attempt;
    c.seed = rand_u64(&p->rand);
    c.on_ready = on_ready;
    c.on_lost = on_lost;
    c.on_over = on_over;
    c.on_stopped = on_stopped;
    c.ctx = p;
    return c;
}

// The proxies of the command line

static int dial_named(struct proxies *p, struct err *err)
{
    const struct host_options *o = p->config.options;
    for (size_t i = 0; i < o->n_connect; i++) {
        struct host_session_config c = common(p);
        c.address = o->connect[i].address;
        c.path = o->connect[i].path;
        c.shares = str_starts(c.address, "unix:");
        if (o->connect[i].tls && !p->tls && !(p->tls = ws_tls_new(o->ca_pem, err)))
            return err_wrap(err, "CADRE_CA");
        c.tls = o->connect[i].tls ? p->tls : NULL;
        p->named[i] = host_session_new(p->loop, &c, err);
        if (!p->named[i])
            return err->code;
        p->n_named++;
    }
    return 0;
}

// The operator's replicas

static void *add(void *ctx, const char *address)
{
    struct proxies *p = ctx;
    struct host_session_config c = common(p);
    struct err ignored = ERR_INIT;
    c.address = address;
    c.path = WS_REPLICAS_PATH;
    c.tls = ws_replicas_tls(p->replicas);
    c.server_name = ws_replicas_host(p->replicas);
    return host_session_new(p->loop, &c, &ignored);
}

static bool is_up(void *ctx, void *link)
{
    (void)ctx;
    return host_session_up(link);
}

static void remove_link(void *ctx, void *link)
{
    (void)ctx;
    host_session_free(link);
}

static void on_unresolved(void *ctx, const struct err *err)
{
    struct proxies *p = ctx;
    char line[sizeof err->msg + 32];
    snprintf(line, sizeof line, "no operator yet: %s", err->msg);
    p->config.on_trouble(p->config.ctx, line);
}

static int dial_operator(struct proxies *p, struct err *err)
{
    const struct ws_replicas_config config = {
        .url = p->config.options->operator_url,
        .ca_pem = p->config.options->ca_pem,
        .add = add,
        .up = is_up,
        .remove = remove_link,
        .unresolved = on_unresolved,
        .ctx = p,
    };
    p->replicas = ws_replicas_new(p->loop, &config, err);
    return p->replicas ? 0 : err_wrap(err, "CADRE_OPERATOR, CADRE_CA");
}

struct proxies *proxies_new(struct loop *loop, const struct proxies_config *config, struct err *err)
{
    struct proxies *p = xcalloc(1, sizeof *p);
    p->config = *config;
    p->loop = loop;
    rand_seed_system(&p->rand);
    int r = config->options->n_connect ? dial_named(p, err) : dial_operator(p, err);
    if (r == 0)
        return p;
    proxies_free(p);
    return NULL;
}

// All sessions: those with named proxies, then those with replicas.

static size_t count(const struct proxies *p)
{
    return p->n_named + (p->replicas ? ws_replicas_count(p->replicas) : 0);
}

static struct host_session *session_at(const struct proxies *p, size_t i)
{
    return i < p->n_named ? p->named[i] : ws_replicas_at(p->replicas, i - p->n_named);
}

static void send_to_all(struct proxies *p, enum record_type type, const char *body, size_t len)
{
    for (size_t i = 0; i < count(p); i++)
        host_session_send(session_at(p, i), type, body, len);
}

void proxies_ask_place(struct proxies *p, const struct rendezvous_question *q)
{
    char body[PLACE_BODY_SIZE];
    send_to_all(p, RECORD_PLACE, body, control_records_question(q, body));
}

void proxies_tell_progress(struct proxies *p, const char *body, size_t len)
{
    send_to_all(p, RECORD_PROGRESS, body, len);
}

void proxies_ask_archive(struct proxies *p, const struct archive_piece *piece, unsigned nth)
{
    size_t n = count(p);
    _cleanup_(buf_done) struct buf body = BUF_INIT(2 * ARCHIVE_HEAD_MAX);
    archive_piece_write(piece, &body);
    for (size_t k = 0, asked = 0; k < n && !asked; k++)
        asked = host_session_send(session_at(p, (nth + k) % n), RECORD_ARCHIVE, buf_str(&body), body.len);
}

void proxies_stop(struct proxies *p)
{
    if (p->replicas)
        ws_replicas_stop(p->replicas);
    p->n_stopping = count(p);
    if (p->n_stopping == 0)
        p->config.on_stopped(p->config.ctx);
    for (size_t i = 0; i < count(p); i++)
        host_session_stop(session_at(p, i));
}

void proxies_free(struct proxies *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_named; i++)
        host_session_free(p->named[i]);
    ws_replicas_free(p->replicas);
    ws_tls_unref(p->tls);
    free(p);
}
