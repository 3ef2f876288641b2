// SPDX-License-Identifier: Apache-2.0
#include "common/base/loop_resolve.h"

#include "common/base/mem.h"

#include <netdb.h>
#include <stdlib.h>
#include <uv.h>

struct loop_resolve {
    uv_getaddrinfo_t uv;
    struct loop_timer *now; // for an answer that is known at once
    struct addrinfo *found;
    int status;
    char *host;
    loop_resolve_fn fn; // NULL = cancelled
    void *ctx;
};

static void resolve_free(struct loop_resolve *r)
{
    loop_timer_free(r->now);
    if (r->found)
        freeaddrinfo(r->found);
    free(r->host);
    free(r);
}

static void resolve_finish(void *ctx)
{
    struct loop_resolve *r = ctx;
    struct err err = ERR_INIT;
    if (r->status != 0)
        err_set(&err, r->status == UV_EAI_NONAME ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "cannot look up \"%s\": %s",
                r->host, uv_strerror(r->status));
    if (r->fn)
        r->fn(r->ctx, r->status == 0 ? r->found : NULL, &err);
    resolve_free(r);
}

static void on_resolved(uv_getaddrinfo_t *uv, int status, struct addrinfo *found)
{
    struct loop_resolve *r = CONTAINER_OF(uv, struct loop_resolve, uv);
    r->status = status;
    r->found = found;
    resolve_finish(r);
}

struct loop_resolve *loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                      void *ctx)
{
    struct loop_resolve *r = xcalloc(1, sizeof *r);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    r->host = xstrdup(host);
    r->fn = fn;
    r->ctx = ctx;
    if (getaddrinfo(host, port, &hints, &r->found) != 0) { // not a number: a thread asks
        hints.ai_flags = AI_ADDRCONFIG;
        r->status = uv_getaddrinfo(loop_uv(loop), &r->uv, on_resolved, host, port, &hints);
        if (r->status == 0)
            return r;
    }
    r->now = loop_timer_new(loop, resolve_finish, r);
    loop_timer_arm(r->now, 0);
    return r;
}

void loop_resolve_cancel(struct loop_resolve *r)
{
    if (!r)
        return;
    r->fn = NULL;
    if (r->now)
        resolve_free(r);
    else
        uv_cancel((uv_req_t *)&r->uv); // calls back in any case
}
