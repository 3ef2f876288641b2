// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/operators.h"

#include "common/base/mem.h"
#include "common/ws/ws_replicas.h"

#include <stdlib.h>

struct operators {
    struct agent_connection_config config;
    struct rand rand;
    struct ws_replicas *replicas;
};

static void *add(void *ctx, const char *address)
{
    struct operators *o = ctx;
    return agent_connection_new(&o->config, address);
}

static bool is_up(void *ctx, void *link)
{
    (void)ctx;
    return agent_connection_up(link);
}

static void remove_link(void *ctx, void *link)
{
    (void)ctx;
    agent_connection_free(link);
}

static void on_unresolved(void *ctx, const struct err *err)
{
    struct operators *o = ctx;
    rank_output_say(agent_output(o->config.agent), "no operator yet: %s", err->msg);
}

static void on_lost(void *ctx)
{
    struct operators *o = ctx;
    ws_replicas_look_soon(o->replicas);
}

struct operators *operators_new(struct loop *loop, struct agent *agent, const struct probe *gpus, const char *url,
                                const char *ca_pem, const char *token_file, struct err *err)
{
    struct operators *o = xcalloc(1, sizeof *o);
    const struct ws_replicas_config config = {.url = url,
                                              .ca_pem = ca_pem,
                                              .add = add,
                                              .up = is_up,
                                              .remove = remove_link,
                                              .unresolved = on_unresolved,
                                              .ctx = o};
    o->replicas = ws_replicas_new(loop, &config, err);
    if (!o->replicas) {
        free(o);
        return NULL;
    }
    rand_seed_system(&o->rand);
    o->config = (struct agent_connection_config){.loop = loop,
                                                 .agent = agent,
                                                 .gpus = gpus,
                                                 .tls = ws_replicas_tls(o->replicas),
                                                 .server_name = ws_replicas_host(o->replicas),
                                                 .token_file = token_file,
                                                 .rand = &o->rand,
                                                 .lost = on_lost,
                                                 .lost_ctx = o};
    return o;
}

void operators_free(struct operators *o)
{
    if (!o)
        return;
    ws_replicas_free(o->replicas);
    free(o);
}

void operators_printed(struct operators *o, const char *group, int rank, const char *text, size_t len)
{
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        agent_connection_printed(ws_replicas_at(o->replicas, i), group, rank, text, len);
}

void operators_report(struct operators *o, const struct agent_report *r)
{
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        agent_connection_report(ws_replicas_at(o->replicas, i), r);
}

void operators_gpus(struct operators *o)
{
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        agent_connection_gpus(ws_replicas_at(o->replicas, i));
}

void operators_goodbye(struct operators *o)
{
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        agent_connection_goodbye(ws_replicas_at(o->replicas, i));
}

void operators_close(struct operators *o)
{
    ws_replicas_stop(o->replicas);
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        agent_connection_close(ws_replicas_at(o->replicas, i));
}

bool operators_closed(const struct operators *o)
{
    for (size_t i = 0; i < ws_replicas_count(o->replicas); i++)
        if (agent_connection_open(ws_replicas_at(o->replicas, i)))
            return false;
    return true;
}
