// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/call_metrics.h"

#include "common/base/mem.h"
#include "operator/proxy/stats_report.h"

#include <stdlib.h>

// The names of the gateway's counters as metrics.
static const struct {
    const char *name, *help, *labels;
    bool total;
    size_t offset;
} series[] = {
#define CALLS "cadre_proxy_calls_total", "Calls that were answered."
#define AT(field) offsetof(struct gateway_counters, field)
    {"cadre_proxy_sessions", "websocket sessions", "role=\"controller\"", false, AT(clients)},
    {"cadre_proxy_sessions", "websocket sessions", "role=\"worker\"", false, AT(workers)},
    {"cadre_proxy_sessions", "websocket sessions", "role=\"agent\"", false, AT(agents)},
    {"cadre_proxy_requests", "HTTP requests without an answer yet", "", false, AT(posts)},
    {"cadre_proxy_authorisations", "tokens that are being checked", "", false, AT(pending)},
    {"cadre_proxy_sessions_total", "Peers that connected.", "result=\"opened\"", true, AT(opened)},
    {"cadre_proxy_sessions_total", "Peers that connected.", "result=\"refused\"", true, AT(refused)},
    {CALLS, "result=\"ok\",code=\"\"", true, AT(answers)},
    {"cadre_proxy_bytes_total", "bytes of messages", "direction=\"in\"", true, AT(bytes_in)},
    {"cadre_proxy_bytes_total", "bytes of messages", "direction=\"out\"", true, AT(bytes_out)},
    {"cadre_proxy_held_bytes", "bytes of calls without an answer yet", "", false, AT(bytes_held)},
#undef AT
};

struct call_metrics {
    struct metrics *metrics;
    struct gateway *gateway;
    struct agents *agents;
    struct metric *series[ARRAY_LEN(series)], *failed[CALL_FAILURE_KINDS]; // calls, by code
};

static void collect(void *ctx)
{
    struct call_metrics *c = ctx;
    struct gateway_counters now;
    gateway_counters(c->gateway, &now);
    for (size_t i = 0; i < ARRAY_LEN(series); i++)
        metric_set(c->series[i], (double)*(const uint64_t *)((const char *)&now + series[i].offset));
    for (unsigned i = 0; i < CALL_FAILURE_KINDS; i++)
        metric_set(c->failed[i], (double)now.errors[i]);
}

static void append(void *ctx, struct buf *out)
{
    const struct call_metrics *c = ctx;
    stats_report_metrics(gateway_router(c->gateway), out);
    agents_metrics(c->agents, out);
}

struct call_metrics *call_metrics_new(struct metrics *metrics, struct gateway *gateway, struct agents *agents)
{
    struct call_metrics *c = xcalloc(1, sizeof *c);
    *c = (struct call_metrics){.metrics = metrics, .gateway = gateway, .agents = agents};
    for (size_t i = 0; i < ARRAY_LEN(series); i++)
        c->series[i] = (series[i].total ? metrics_counter : metrics_gauge)(metrics, series[i].name, series[i].help,
                                                                           series[i].labels);
    for (unsigned i = 0; i < CALL_FAILURE_KINDS; i++) {
        _cleanup_(free_p) char *labels = xasprintf("result=\"error\",code=\"%s\"", call_failure_kind_name(i));
        c->failed[i] = metrics_counter(metrics, CALLS, labels);
    }
    metrics_on_collect(metrics, collect, c);
    metrics_appendix(metrics, append, c);
    return c;
}

void call_metrics_free(struct call_metrics *c)
{
    if (!c)
        return;
    metrics_off_collect(c->metrics, collect, c);
    metrics_appendix(c->metrics, NULL, NULL);
    free(c);
}
