// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_addresses.h"

#include "common/base/host_port.h"
#include "common/base/loop_resolve.h"
#include "common/base/mem.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

struct ws_addresses {
    struct loop *loop;
    char *host, *port;
    struct loop_resolve *resolve; // at most one: lookups that hang would fill the threads for lookups
    struct loop_timer *patience;
    struct ws_address list[WS_ADDRESSES_MAX];
    size_t n;
    uint64_t failures;
    ws_addresses_fn fn; // NULL: no caller waits
    void *ctx;
};

static struct ws_address *find(struct ws_address *list, size_t n, const struct ws_address *address)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].len == address->len && memcmp(&list[i].sa, &address->sa, address->len) == 0)
            return &list[i];
    return NULL;
}

// Inserts an address before all that failed later. Equal ones keep their order.
static void insert(struct ws_address *list, size_t n, const struct ws_address *address)
{
    while (n > 0 && list[n - 1].failed > address->failed) {
        list[n] = list[n - 1];
        n--;
    }
    list[n] = *address;
}

static void take(struct ws_addresses *a, const struct addrinfo *found)
{
    struct ws_address list[WS_ADDRESSES_MAX];
    size_t n = 0;
    for (; found && n < WS_ADDRESSES_MAX; found = found->ai_next) {
        struct ws_address one = {.len = found->ai_addrlen};
        memcpy(&one.sa, found->ai_addr, found->ai_addrlen);
        const struct ws_address *known = find(a->list, a->n, &one);
        one.failed = known ? known->failed : 0;
        if (!find(list, n, &one))
            insert(list, n++, &one);
    }
    memcpy(a->list, list, n * sizeof *list);
    a->n = n;
}

static void tell(struct ws_addresses *a, const struct err *err)
{
    ws_addresses_fn fn = a->fn;
    loop_timer_disarm(a->patience);
    a->fn = NULL;
    if (fn)
        fn(a->ctx, err);
}

// If the name server cannot be reached, the known addresses stay.
static void on_resolved(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct ws_addresses *a = ctx;
    a->resolve = NULL;
    if (found)
        take(a, found);
    tell(a, a->n ? &(struct err){0} : err);
}

static void on_patience(void *ctx)
{
    tell(ctx, &(struct err){0});
}

struct ws_addresses *ws_addresses_new(struct loop *loop, const char *address, struct err *err)
{
    char *host;
    const char *port;
    if (!host_port_split(address, &host, &port)) {
        err_set(err, ERR_INVALID, "\"%s\" is not an address; there are host:port, [v6]:port and unix:/path", address);
        return NULL;
    }
    struct ws_addresses *a = xcalloc(1, sizeof *a);
    a->loop = loop;
    a->host = host;
    a->port = xstrdup(port);
    a->patience = loop_timer_new(loop, on_patience, a);
    return a;
}

void ws_addresses_free(struct ws_addresses *a)
{
    if (!a)
        return;
    loop_resolve_cancel(a->resolve);
    loop_timer_free(a->patience);
    free(a->host);
    free(a->port);
    free(a);
}

void ws_addresses_find(struct ws_addresses *a, ws_addresses_fn fn, void *ctx)
{
    bool slow = a->resolve != NULL; // it has had enough time
    a->fn = fn;
    a->ctx = ctx;
    if (!slow)
        a->resolve = loop_resolve_new(a->loop, a->host, a->port, on_resolved, a);
    if (a->n)
        loop_timer_arm(a->patience, slow ? 0 : WS_ADDRESSES_PATIENCE_MS);
}

void ws_addresses_cancel(struct ws_addresses *a)
{
    loop_timer_disarm(a->patience);
    a->fn = NULL;
}

const char *ws_addresses_host(const struct ws_addresses *a)
{
    return a->host;
}

size_t ws_addresses_count(const struct ws_addresses *a)
{
    return a->n;
}

const struct ws_address *ws_addresses_at(const struct ws_addresses *a, size_t i)
{
    return &a->list[i];
}

void ws_addresses_failed(struct ws_addresses *a, const struct ws_address *address)
{
    struct ws_address *known = find(a->list, a->n, address);
    if (!known)
        return;
    struct ws_address moved = *known;
    moved.failed = ++a->failures;
    memmove(known, known + 1, (size_t)(a->list + a->n - known - 1) * sizeof *known);
    insert(a->list, a->n - 1, &moved);
}
