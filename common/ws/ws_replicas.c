// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_replicas.h"

#include "common/base/host_port.h"
#include "common/base/loop_resolve.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_SIZE = 96 };

struct replica {
    char address[ADDRESS_SIZE];
    void *link;
};

struct ws_replicas {
    struct loop *loop;
    struct ws_replicas_config config;
    struct rand rand;
    char *host, *port;
    struct ws_tls *tls;
    struct loop_timer *timer;
    struct loop_resolve *resolve;
    struct replica list[WS_REPLICAS_MAX];
    size_t n;
    int64_t wait_ms; // until the next lookup
    int64_t lost_ms; // when a link was lost
    size_t most;     // addresses that the name has, or had until ...
    int64_t most_ms; // ... this time
    bool stopped;
    bool told; // it was reported that the name has no address
};

static int parse_url(struct ws_replicas *r, const char *url, bool *ret_tls, struct err *err)
{
    *ret_tls = str_starts(url, "wss://");
    const char *address = *ret_tls ? url + 6 : str_starts(url, "ws://") ? url + 5 : "", *port;
    if (!host_port_split(address, &r->host, &port))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is not the address of an operator: it must be wss://HOST:PORT, or wss://[IPv6]:PORT",
                       url);
    r->port = xstrdup(port);
    return 0;
}

static bool is_in(char list[][ADDRESS_SIZE], size_t n, const char *address)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i], address))
            return true;
    return false;
}

static size_t list_addresses(const struct addrinfo *found, const char *port, char list[][ADDRESS_SIZE])
{
    size_t n = 0;
    for (; found && n < WS_REPLICAS_MAX; found = found->ai_next) {
        char host[64];
        if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        snprintf(list[n], ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
        n += !is_in(list, n, list[n]);
    }
    return n;
}

// A replica whose address is gone is given up when its link is down, not before. Returns how many.
static size_t drop_gone(struct ws_replicas *r, char list[][ADDRESS_SIZE], size_t n)
{
    size_t before = r->n;
    for (size_t i = 0; i < r->n;) {
        struct replica *p = &r->list[i];
        if (is_in(list, n, p->address) || r->config.up(r->config.ctx, p->link)) {
            i++;
            continue;
        }
        void *link = p->link;
        memmove(p, p + 1, (--r->n - i) * sizeof *p);
        r->config.remove(r->config.ctx, link);
    }
    return before - r->n;
}

static bool is_known(const struct ws_replicas *r, const char *address)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->list[i].address, address))
            return true;
    return false;
}

static size_t add_new(struct ws_replicas *r, char list[][ADDRESS_SIZE], size_t n)
{
    size_t before = r->n;
    for (size_t i = 0; i < n && r->n < WS_REPLICAS_MAX; i++) {
        void *link = is_known(r, list[i]) ? NULL : r->config.add(r->config.ctx, list[i]);
        if (!link)
            continue;
        memcpy(r->list[r->n].address, list[i], ADDRESS_SIZE);
        r->list[r->n++].link = link;
    }
    return r->n - before;
}

static int64_t now_ms(const struct ws_replicas *r)
{
    return clock_mono_ms(loop_clock(r->loop));
}

static void note_most(struct ws_replicas *r, size_t n)
{
    if (n < r->most && now_ms(r) - r->most_ms < WS_REPLICAS_LATELY_MS)
        return;
    r->most = n;
    r->most_ms = now_ms(r);
}

static bool has_few(const struct ws_replicas *r)
{
    size_t up = 0;
    for (size_t i = 0; i < r->n; i++)
        up += r->config.up(r->config.ctx, r->list[i].link);
    return !r->config.patient && up < MAX(r->most, (size_t)1);
}

int64_t ws_replicas_wait(int64_t last_ms, int64_t since_loss_ms, bool few, int64_t look_ms)
{
    int64_t most = !few ? look_ms : since_loss_ms < WS_REPLICAS_BRISK_MS ? WS_REPLICAS_SOON_MS : WS_REPLICAS_FEW_MS;
    return MIN(MIN(MAX(2 * last_ms, (int64_t)WS_REPLICAS_SOON_MS), most), look_ms);
}

// Plans the next lookup. last_ms: the pause before the last one, 0 if something is new.
static void look_later(struct ws_replicas *r, int64_t last_ms)
{
    r->wait_ms =
        ws_replicas_wait(last_ms, r->lost_ms ? now_ms(r) - r->lost_ms : INT64_MAX, has_few(r), r->config.look_ms);
    loop_timer_arm(r->timer, rand_range(&r->rand, r->wait_ms / 2, r->wait_ms));
}

static void on_resolved(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct ws_replicas *r = ctx;
    char list[WS_REPLICAS_MAX][ADDRESS_SIZE];
    r->resolve = NULL;
    bool calm = true;
    if (found) {
        size_t n = list_addresses(found, r->port, list);
        note_most(r, n);
        calm = drop_gone(r, list, n) + add_new(r, list, n) == 0;
    } else if (!r->told) { // all links stay: if the name server cannot be reached, this says nothing about the replicas
        r->config.unresolved(r->config.ctx, err);
    }
    r->told = !found;
    look_later(r, calm ? r->wait_ms : 0);
}

static void look(void *ctx)
{
    struct ws_replicas *r = ctx;
    r->resolve = loop_resolve_new(r->loop, r->host, r->port, on_resolved, r);
}

struct ws_replicas *ws_replicas_new(struct loop *loop, const struct ws_replicas_config *config, struct err *err)
{
    struct ws_replicas *r = xcalloc(1, sizeof *r);
    bool tls = false;
    r->loop = loop;
    r->config = *config;
    r->config.look_ms = config->look_ms ? config->look_ms : WS_REPLICAS_LOOK_MS;
    rand_seed_system(&r->rand);
    r->timer = loop_timer_new(loop, look, r);
    if (parse_url(r, config->url, &tls, err) == 0 && tls)
        r->tls = ws_tls_new(config->ca_pem, err);
    if (err->code < 0) {
        ws_replicas_free(r);
        return NULL;
    }
    loop_timer_arm(r->timer, 0);
    return r;
}

void ws_replicas_free(struct ws_replicas *r)
{
    if (!r)
        return;
    while (r->n > 0)
        r->config.remove(r->config.ctx, r->list[--r->n].link);
    loop_resolve_cancel(r->resolve);
    loop_timer_free(r->timer);
    ws_tls_unref(r->tls);
    free(r->host);
    free(r->port);
    free(r);
}

void ws_replicas_look_soon(struct ws_replicas *r)
{
    r->lost_ms = now_ms(r);
    if (r->wait_ms > WS_REPLICAS_SOON_MS && !r->resolve && !r->stopped)
        look_later(r, 0);
}

void ws_replicas_stop(struct ws_replicas *r)
{
    r->stopped = true;
    loop_timer_disarm(r->timer);
    loop_resolve_cancel(TAKE_PTR(r->resolve));
}

const char *ws_replicas_host(const struct ws_replicas *r)
{
    return r->host;
}

struct ws_tls *ws_replicas_tls(const struct ws_replicas *r)
{
    return r->tls;
}

size_t ws_replicas_count(const struct ws_replicas *r)
{
    return r->n;
}

void *ws_replicas_at(const struct ws_replicas *r, size_t i)
{
    return r->list[i].link;
}
