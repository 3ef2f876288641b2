// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/admission.h"

#include "common/base/str.h"
#include "operator/gateway/browser.h"
#include "operator/gateway/gateway_state.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void stop_waiting(struct admission *a)
{
    a->gateway->counters.pending -= a->pending;
    a->pending = false;
    alarm_clear(&a->alarm, &a->gateway->alarms);
}

static void settle(struct admission *a, const struct err *err)
{
    a->settled = true;
    a->err = *err;
    stop_waiting(a);
    if (!a->asking)
        a->then(a);
}

static void on_answer(void *ctx, const struct client_user *who, int64_t expires_ms, const struct err *err)
{
    struct admission *a = ctx;
    if (who && who->name)
        a->user = xstrdup(who->name);
    if (!err->code && who && who->subject)
        a->subject = xstrdup(who->subject);
    a->code = !err->code && who && who->code;
    a->expires_ms = expires_ms;
    settle(a, err);
}

static void on_late(struct alarm *alarm)
{
    struct admission *a = CONTAINER_OF(alarm, struct admission, alarm);
    const struct authority *authority = a->gateway->config.authority;
    struct err err = ERR_INIT;
    authority->cancel(authority->ctx, a->id);
    err_set(&err, ERR_TIMEOUT, "the token could not be checked in time; try again");
    settle(a, &err);
}

void admission_ask(struct admission *a, struct gateway *g, const char *token, const char *ns,
                   void (*then)(struct admission *a))
{
    const struct authority *authority = g->config.authority;
    *a = (struct admission){.gateway = g, .then = then, .asking = true};
    if (g->counters.pending >= g->config.max_pending) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_THROTTLED, "the operator is checking %u tokens already; try again",
                (unsigned)g->counters.pending);
        settle(a, &err);
        a->asking = false;
        return;
    }
    a->pending = true;
    g->counters.pending++;
    a->id = authority->client(authority->ctx, token, ns, on_answer, a);
    a->asking = false;
    if (!a->settled)
        alarm_set(&a->alarm, &g->alarms, g->config.authorise_ms, on_late);
}

void admission_done(struct admission *a)
{
    if (a->pending) {
        const struct authority *authority = a->gateway->config.authority;
        authority->cancel(authority->ctx, a->id);
        stop_waiting(a);
    }
    free(TAKE_PTR(a->subject));
    free(TAKE_PTR(a->user));
}

int64_t admission_left_ms(const struct admission *a)
{
    if (!a->expires_ms)
        return -1;
    return MAX((int64_t)0, a->expires_ms - clock_wall_ms(loop_clock(a->gateway->loop)));
}

bool admission_is_open(const struct gateway *g, const struct ws_request *r)
{
    return g->config.authority->open && ws_request_is_unix(r);
}

int admission_check(const struct gateway *g, struct ws_request *r, struct err *err)
{
    bool plain = g->config.authority->open && !ws_request_is_unix(r);
    int code = browser_check(plain, ws_request_header(r, "host"), ws_request_header(r, "origin"), err);
    if (code == 0 && g->stopping)
        code = err_set(err, ERR_UNAVAILABLE, "this operator is stopping; connect to another one");
    return code;
}

int admission_no_token(struct err *err)
{
    return err_set(err, ERR_UNAUTHORIZED, "a token is needed: Authorization: Bearer ...");
}

const char *admission_token(const struct gateway *g, struct ws_request *r)
{
    const char *text = ws_request_header(r, "authorization"), *token = NULL;
    if (text && !admission_is_open(g, r) && strncasecmp(text, "Bearer ", 7) == 0)
        token = text + 7 + strspn(text + 7, " ");
    return str_empty(token) ? NULL : token;
}
