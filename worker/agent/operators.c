// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/operators.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_SIZE = 96 };

struct operators {
    struct connection_config config;
    struct rand rand;
    char *host, *port;
    struct loop_timer *timer;
    struct loop_resolve *resolve;
    struct connection *connections[OPERATORS_MAX];
    size_t n;
    bool told; // the log says already that the name does not resolve
};

static int parse_url(struct operators *o, const char *url, bool *ret_tls, struct err *err)
{
    *ret_tls = str_starts(url, "wss://");
    const char *host = *ret_tls ? url + 6 : str_starts(url, "ws://") ? url + 5 : NULL;
    const char *colon = host ? strrchr(host, ':') : NULL;
    int64_t port;
    if (!colon || colon == host || !str_to_i64(colon + 1, &port) || port < 1 || port > 65535)
        return err_set(err, ERR_INVALID, "\"%s\" is not the address of an operator: it must be wss://HOST:PORT", url);
    bool bracketed = host[0] == '[' && colon[-1] == ']';
    o->host = bracketed ? strndup(host + 1, (size_t)(colon - host) - 2) : strndup(host, (size_t)(colon - host));
    o->port = xstrdup(colon + 1);
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
    for (; found && n < OPERATORS_MAX; found = found->ai_next) {
        char host[64];
        if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        snprintf(list[n], ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
        n += !is_in(list, n, list[n]);
    }
    return n;
}

// A replica that is not named any more is given up when its connection ends, not before.
static void follow(struct operators *o, char list[][ADDRESS_SIZE], size_t n)
{
    for (size_t i = 0; i < o->n;) {
        struct connection *c = o->connections[i];
        if (is_in(list, n, connection_address(c)) || connection_up(c)) {
            i++;
            continue;
        }
        connection_free(c);
        memmove(&o->connections[i], &o->connections[i + 1], (--o->n - i) * sizeof o->connections[0]);
    }
    for (size_t i = 0; i < n && o->n < OPERATORS_MAX; i++) {
        bool known = false;
        for (size_t j = 0; j < o->n; j++)
            known = known || str_eq(list[i], connection_address(o->connections[j]));
        if (!known)
            o->connections[o->n++] = connection_new(&o->config, list[i]);
    }
}

static void on_resolved(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct operators *o = ctx;
    char list[OPERATORS_MAX][ADDRESS_SIZE];
    o->resolve = NULL;
    if (found)
        follow(o, list, list_addresses(found, o->port, list));
    else if (!o->told)
        output_say(agent_output(o->config.agent), "no operator yet: %s", err->msg);
    o->told = !found;
    loop_timer_arm(o->timer, rand_range(&o->rand, OPERATORS_LOOK_MS / 2, OPERATORS_LOOK_MS));
}

static void look(void *ctx)
{
    struct operators *o = ctx;
    o->resolve = loop_resolve_new(o->config.loop, o->host, o->port, on_resolved, o);
}

struct operators *operators_new(struct loop *loop, struct agent *agent, const char *url, const char *ca_pem,
                                const char *token_file, struct err *err)
{
    struct operators *o = xcalloc(1, sizeof *o);
    bool tls = false;
    rand_seed_system(&o->rand);
    o->timer = loop_timer_new(loop, look, o);
    if (parse_url(o, url, &tls, err) == 0 && tls)
        o->config.tls = ws_tls_new(ca_pem, err);
    if (err->code < 0) {
        operators_free(o);
        return NULL;
    }
    o->config.loop = loop;
    o->config.agent = agent;
    o->config.server_name = o->host;
    o->config.token_file = token_file;
    o->config.rand = &o->rand;
    loop_timer_arm(o->timer, 0);
    return o;
}

void operators_free(struct operators *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++)
        connection_free(o->connections[i]);
    loop_resolve_cancel(o->resolve);
    loop_timer_free(o->timer);
    ws_tls_unref(o->config.tls);
    free(o->host);
    free(o->port);
    free(o);
}

void operators_report(struct operators *o, const struct agent_report *r)
{
    for (size_t i = 0; i < o->n; i++)
        connection_report(o->connections[i], r);
}

void operators_close(struct operators *o)
{
    loop_timer_disarm(o->timer);
    loop_resolve_cancel(TAKE_PTR(o->resolve));
    for (size_t i = 0; i < o->n; i++)
        connection_close(o->connections[i]);
}

bool operators_closed(const struct operators *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (connection_open(o->connections[i]))
            return false;
    return true;
}
