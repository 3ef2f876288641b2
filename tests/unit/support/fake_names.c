// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/fake_names.h"

#include "common/base/mem.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_names fake_names;

struct lookup {
    struct loop_timer *answer;
    loop_resolve_fn fn;
    void *ctx;
    char port[16];
};

struct loop_resolve *__wrap_loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                             void *ctx);
void __wrap_loop_resolve_cancel(struct loop_resolve *r);

static struct addrinfo *addresses_of(const char *port)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *first = NULL, **end = &first;
    char names[256], *at = names, *word;
    snprintf(names, sizeof names, "%s", fake_names.addresses);
    while ((word = strtok_r(at, " ", &at))) {
        if (getaddrinfo(word, port, &hints, end) != 0)
            abort();
        end = &(*end)->ai_next;
    }
    return first;
}

static void free_one_by_one(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *one = list;
        list = one->ai_next;
        one->ai_next = NULL;
        freeaddrinfo(one);
    }
}

static void answer(void *ctx)
{
    struct lookup *l = ctx;
    struct err err = ERR_INIT;
    struct addrinfo *found = fake_names.state == FAKE_NAMES_ANSWER ? addresses_of(l->port) : NULL;
    if (!found)
        err_set(&err, ERR_UNAVAILABLE, "cannot look up the name");
    l->fn(l->ctx, found, &err);
    free_one_by_one(found);
    loop_timer_free(l->answer);
    free(l);
}

struct loop_resolve *__wrap_loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                             void *ctx)
{
    struct lookup *l = xcalloc(1, sizeof *l);
    (void)host;
    *l = (struct lookup){.answer = loop_timer_new(loop, answer, l), .fn = fn, .ctx = ctx};
    snprintf(l->port, sizeof l->port, "%s", port);
    fake_names.lookups++;
    if (fake_names.state != FAKE_NAMES_HANG)
        loop_timer_arm(l->answer, 0);
    return (struct loop_resolve *)l;
}

void __wrap_loop_resolve_cancel(struct loop_resolve *r)
{
    struct lookup *l = (struct lookup *)r;
    if (!l)
        return;
    fake_names.canceled++;
    loop_timer_free(l->answer);
    free(l);
}
