// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/gateway.h"
#include "operator/local/trust.h"
#include "tests/chaos/chaos.h"

#include <signal.h>
#include <stdio.h>

struct proxy {
    struct gateway *gateway;
    bool stopping;
};

static void on_stop(void *ctx, int signo)
{
    struct proxy *p = ctx;
    (void)signo;
    p->stopping = true;
    gateway_stop(p->gateway);
}

int proxy_run(const char *socket_path)
{
    char address[256];
    struct err err = ERR_INIT;
    struct proxy p = {.stopping = false};
    struct loop *loop = loop_new();
    const struct authority authority = trust_authority(NULL);
    const struct gateway_config config = {.authority = &authority, .share = true, .drain_ms = 500};
    signal(SIGPIPE, SIG_IGN);
    p.gateway = gateway_new(loop, &config, &err);
    snprintf(address, sizeof address, "unix:%s", socket_path);
    if (!p.gateway || gateway_listen(p.gateway, address, false, &err) < 0) {
        fprintf(stderr, "proxy: %s\n", err.msg);
        return 1;
    }
    router_group_set(
        gateway_router(p.gateway),
        &(struct group_facts){
            .uid = CHAOS_GROUP, .ns = CHAOS_NS, .name = CHAOS_GROUP, .world = CHAOS_RANKS, .attempt = 1, .oldest = 1});
    struct loop_signal *stop = loop_signal_new(loop, SIGTERM, on_stop, &p);
    while (!p.stopping || !gateway_idle(p.gateway))
        loop_run_once(loop, 1000);
    gateway_free(p.gateway);
    loop_signal_free(stop);
    loop_free(loop);
    return 0;
}
