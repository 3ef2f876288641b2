// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/outage.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct outage {
    struct loop *loop;
    struct kube_client *client;
    const char *ns;
    void (*on_over)(void *ctx, int64_t away_ms);
    void *ctx;
    struct loop_timer *timer; // until it asks again
    bool asks, away;
    int64_t asked_ms; // when it was suspected
};

// An error from the API server is an answer, too. The exceptions are the errors of a server that is starting or cannot
// reach etcd.
static bool is_answer(const struct err *err)
{
    return err->code == 0 || (err->http_status > 0 && err->http_status < 500 && err->http_status != 429);
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct outage *o = ctx;
    bool over = o->away;
    (void)response;
    if (err->code == ERR_CANCELED) // the client is being freed
        return;
    if (!is_answer(err)) {
        o->away = true;
        loop_timer_arm(o->timer, OUTAGE_ASK_MS);
        return;
    }
    o->asks = o->away = false;
    if (over)
        o->on_over(o->ctx, loop_now_ms(o->loop) - o->asked_ms);
}

static void ask(void *ctx)
{
    struct outage *o = ctx;
    const struct kube_request r = {.verb = VERB_LIST, .kind = KIND_WORKERGROUP, .ns = o->ns, .limit = 1};
    (void)kube_send(o->client, &r, OUTAGE_PATIENCE_MS, on_answer, o);
}

struct outage *outage_new(struct loop *loop, struct kube_client *client, const char *ns,
                          void (*on_over)(void *ctx, int64_t away_ms), void *ctx)
{
    struct outage *o = xcalloc(1, sizeof *o);
    *o = (struct outage){.loop = loop, .client = client, .ns = ns, .on_over = on_over, .ctx = ctx};
    o->timer = loop_timer_new(loop, ask, o);
    return o;
}

void outage_free(struct outage *o)
{
    if (!o)
        return;
    loop_timer_free(o->timer);
    free(o);
}

void outage_suspect(struct outage *o)
{
    if (o->asks)
        return;
    o->asks = true;
    o->asked_ms = loop_now_ms(o->loop);
    ask(o);
}
