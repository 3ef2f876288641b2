// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/gateway.h"

#include "common/wire/ref.h"
#include "operator/gateway/agent_peer.h"
#include "operator/gateway/budget.h"
#include "operator/gateway/group_changes.h"
#include "operator/gateway/post.h"
#include "operator/gateway/upgrade.h"
#include "operator/gateway/worker_peer.h"
#include "operator/proxy/jsonrpc_message.h"
#include "operator/proxy/output.h"
#include "operator/proxy/tenant.h"

#include <stdlib.h>

// The router

static void arm_timer(struct gateway *g)
{
    int64_t a = router_wait_ms(&g->router), b = alarms_wait_ms(&g->alarms), now = clock_mono_ms(loop_clock(g->loop));
    int64_t wait = a < 0 ? b : b < 0 ? a : MIN(a, b), at = wait < 0 ? INT64_MAX : now + wait;
    if (at == g->timer_at)
        return;
    g->timer_at = at;
    if (wait < 0)
        loop_timer_disarm(g->timer);
    else
        loop_timer_arm(g->timer, wait);
}

// All answers are sent, or the time is over.
static void end_all(struct gateway *g)
{
    g->ended = g->router.stopping = true;
    alarm_clear(&g->settle, &g->alarms);
    alarm_clear(&g->drain, &g->alarms);
    posts_stop(g, true);
    LIST_FOREACH(l, &g->connections)
        connection_goodbye(CONTAINER_OF(l, struct connection, link));
}

static void on_drained_late(struct alarm *a)
{
    end_all(CONTAINER_OF(a, struct gateway, drain));
}

// A client that has read its GOODBYE sends nothing new. Calls that come from now on are therefore refused.
static void on_settled(struct alarm *a)
{
    struct gateway *g = CONTAINER_OF(a, struct gateway, settle);
    g->router.stopping = true;
    LIST_FOREACH(l, &g->connections)
        connection_go_if_done(CONTAINER_OF(l, struct connection, link));
}

// Agents send what processes print only while somebody listens.
static void tell_listening(struct gateway *g)
{
    for (const struct group *changed; (changed = output_changed(&g->router));)
        if (g->config.agents)
            agents_listen(g->config.agents, changed->uid, changed->output != NULL);
}

// Handles input of clients that had to wait: their namespace had used up its part of the turn, or they did not read.
static void on_turn(void *ctx)
{
    struct gateway *g = ctx;
    struct list now = LIST_INIT(now);
    list_splice(&now, &g->behind);
    for (struct list *l; (l = list_pop(&now));)
        connection_go_on(CONTAINER_OF(l, struct connection, behind));
    posts_go_on(g);
}

static void begin_turn(struct gateway *g)
{
    bool waits = tenants_next_turn(&g->router) || !list_empty(&g->behind_posts);
    LIST_FOREACH(l, &g->behind)
        waits = waits || connection_may_go_on(CONTAINER_OF(l, struct connection, behind));
    if (waits)
        loop_timer_arm(g->turn, 0);
}

// Runs before the loop waits. The router has got everything that came in this turn. Now its decisions go out, in as few
// messages as possible.
static void before_waiting(void *ctx)
{
    struct gateway *g = ctx;
    if (g->stopping && !g->ended && !g->counters.clients && !g->counters.posts)
        end_all(g);
    group_changes_run(g);
    tell_listening(g);
    router_turn(&g->router);
    for (struct peer *p; (p = router_changed(&g->router));) {
        struct peer_owner *o = p->owner;
        o->changed(o, p);
    }
    agent_close_replaced(g);
    begin_turn(g);
    arm_timer(g);
    router_waits(&g->router);
}

static void on_timer(void *ctx)
{
    struct gateway *g = ctx;
    g->timer_at = INT64_MAX;
    router_tick(&g->router);
    alarms_ring(&g->alarms);
}

struct router *gateway_router(struct gateway *g)
{
    return &g->router;
}

void gateway_group_gone(struct gateway *g, const char *uid)
{
    router_group_gone(&g->router, uid);
    if (g->config.agents)
        agents_listen(g->config.agents, uid, false);
    worker_forget(g, uid);
}

// Begin and end

#define DEFAULT(field, value) (config->field = config->field ? config->field : (value))

static void set_defaults(struct gateway_config *config)
{
    const struct budget budget = budget_of(config->memory);
    DEFAULT(max_connections, 16384);
    DEFAULT(max_pending, 1024);
    DEFAULT(max_calls, 4096);
    DEFAULT(max_body, (size_t)2 << 30);
    DEFAULT(max_whole, MIN(config->max_body, budget.whole));
    DEFAULT(max_post, (size_t)1 << 20);
    DEFAULT(max_queue, budget.queue);
    DEFAULT(max_session, budget.session);
    DEFAULT(max_total, budget.all);
    DEFAULT(hello_ms, 10 * 1000);
    DEFAULT(authorise_ms, 10 * 1000);
    DEFAULT(review_ms, 60 * 1000);
    DEFAULT(ready_wait_ms, 10 * 60 * 1000);
    DEFAULT(task_wait_ms, 24 * 3600 * 1000);
    DEFAULT(exit_wait_ms, 2000);
    DEFAULT(drain_ms, 5000);
    DEFAULT(settle_ms, 500);
    config->settle_ms = MIN(config->settle_ms, config->drain_ms / 2);
}

static void start_router(struct gateway *g)
{
    const struct gateway_config *c = &g->config;
    const struct router_config rc = {
        .clock = loop_clock(g->loop),
        .replica = c->replica,
        .weights = c->weights,
        .total_sessions = c->max_connections / 2,
        .total_bytes = c->max_total,
        .session_bytes = c->max_session,
        .high_mark = WS_HIGH_MARK,
        .low_mark = WS_LOW_MARK,
        .max_whole = c->max_whole,
        .whole_json = REF_ARGS_MAX,
        .total_calls = 64 * c->max_calls,
        .session_calls = c->max_calls,
        .member_calls = 1024, // the maximum that wait in cadre-worker
        .ready_wait_ms = c->ready_wait_ms,
        .task_wait_ms = c->task_wait_ms,
        .exit_wait_ms = c->exit_wait_ms,
    };
    router_init(&g->router, &rc);
}

static struct ws_server *start_server(struct gateway *g, struct err *err)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, RECORD_SUBPROTOCOL_JSON, NULL};
    const struct gateway_config *c = &g->config;
    const struct ws_server_config sc = {
        .subprotocols = subprotocols,
        .max_connections = c->max_connections,
        .max_message = c->max_whole,
        .message_room = JSONRPC_HEAD_MAX,
        .max_queue = c->max_queue,
        .max_session = c->max_session,
        .max_total = c->max_total,
        .quota = g->router.bytes, // one budget for what comes in, what waits and what goes out
        .max_body = c->max_post,
        .ping_ms = c->ping_ms,
        .waits = connection_waits,
        .on_upgrade = upgrade_accept,
        .on_open = upgrade_open,
        .on_data = connection_data,
        .on_buffer = connection_buffer,
        .on_message = connection_message,
        .on_drained = connection_drained,
        .on_close = connection_closed,
        .on_head = post_head,
        .on_http = post_whole,
        .ctx = g,
    };
    return ws_server_new(g->loop, &sc, err);
}

struct gateway *gateway_new(struct loop *loop, const struct gateway_config *config, struct err *err)
{
    struct gateway *g = xcalloc(1, sizeof *g);
    struct err unshared = ERR_INIT;
    *g = (struct gateway){.loop = loop, .config = *config, .timer_at = INT64_MAX, .alarms = {.loop = loop}};
    set_defaults(&g->config);
    if (!g->config.sleeps)
        loop_spin(loop);
    list_init(&g->connections);
    list_init(&g->posts);
    list_init(&g->archive_sources);
    list_init(&g->behind);
    list_init(&g->behind_posts);
    start_router(g);
    g->unadmitted = quota_new(budget_of(config->memory).unadmitted, g->router.bytes);
    g->probe = config->share ? memory_new(MEMORY_PROBE, &unshared) : NULL;
    g->server = start_server(g, err);
    // The hook is created after the server's own hook, so it runs before that one.
    g->hook = loop_hook_new(loop, before_waiting, g);
    g->timer = loop_timer_new(loop, on_timer, g);
    g->turn = loop_timer_new(loop, on_turn, g);
    if (g->server)
        return g;
    gateway_free(g);
    return NULL;
}

void gateway_free(struct gateway *g)
{
    if (!g)
        return;
    posts_free(g);
    LIST_FOREACH(l, &g->connections)
        connection_free(CONTAINER_OF(l, struct connection, link));
    loop_hook_free(g->hook);
    loop_timer_free(g->timer);
    loop_timer_free(g->turn);
    ws_server_free(g->server);
    worker_forget_all(g);
    router_tick(&g->router);
    quota_unref(g->unadmitted);
    router_done(&g->router);
    deadlines_done(&g->alarms.due);
    memory_free(g->probe);
    free(g->ca_pem);
    free(g);
}

int gateway_listen(struct gateway *g, const char *address, bool tls, struct err *err)
{
    return ws_server_listen(g->server, address, tls, err);
}

int gateway_certificate(struct gateway *g, const char *cert_pem, const char *key_pem, const char *ca_pem,
                        struct err *err)
{
    int r = ws_server_certificate(g->server, cert_pem, key_pem, err);
    if (r < 0)
        return r;
    free(g->ca_pem);
    g->ca_pem = xstrdup(ca_pem);
    return 0;
}

void gateway_stop(struct gateway *g)
{
    if (g->stopping)
        return;
    g->stopping = true;
    ws_server_stop_listening(g->server);
    posts_stop(g, false);
    LIST_FOREACH(l, &g->connections)
        connection_drain(CONTAINER_OF(l, struct connection, link));
    alarm_set(&g->settle, &g->alarms, g->config.settle_ms, on_settled);
    alarm_set(&g->drain, &g->alarms, g->config.drain_ms, on_drained_late);
}

bool gateway_idle(const struct gateway *g)
{
    return ws_server_counters(g->server)->connections == 0;
}

void gateway_counters(const struct gateway *g, struct gateway_counters *ret)
{
    const struct ws_server_counters *ws = ws_server_counters(g->server);
    *ret = g->counters;
    ret->bytes_in = ws->bytes_in;
    ret->bytes_out = ws->bytes_out;
    ret->bytes_held = quota_used(g->router.bytes);
    ret->answers = g->router.n_results;
    for (unsigned i = 0; i < CALL_FAILURE_KINDS; i++)
        ret->errors[i] = g->router.n_errors[i];
}
