// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_connection.h"

#include "common/base/mem.h"

#include <stdlib.h>

#define SWEEPS 20u // parts of a round over all connections, at most

// A round over all connections has parts, so that thousands of pings do not go out at once. Few connections
// need few parts, and none need no timer: a server with nothing to do sleeps.
size_t ws_connections_sweep_parts(const struct ws_server *server)
{
    return list_empty(&server->paused) ? MIN(server->counters.connections, SWEEPS) : SWEEPS;
}

void ws_connections_sweep_next(struct ws_server *server)
{
    size_t parts = ws_connections_sweep_parts(server);
    if (parts)
        loop_timer_arm(server->sweep, MAX(server->config.ping_ms / (int64_t)parts, 1));
}

void ws_connection_known(struct ws_connection *c)
{
    if (c->known)
        return;
    c->known = true;
    list_remove(&c->stranger);
    c->server->n_strangers--;
}

struct ws_connection *ws_connection_adopt(struct ws_listener *l, int fd, bool refused)
{
    struct ws_server *server = l->server;
    struct ws_connection *c = xcalloc(1, sizeof *c);
    uint64_t adopted = server->adopted;
    c->server = server;
    c->fd = fd;
    c->is_unix = l->unix_path;
    c->refused = refused;
    list_append(&server->connections, &c->link);
    list_append(&server->strangers, &c->stranger);
    server->n_strangers++;
    if (!server->counters.connections++)
        ws_connections_sweep_next(server);
    lws_adopt_desc_t how = {
        .vh = l->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | LWS_ADOPT_ALLOW_SSL, .fd.sockfd = fd, .opaque = c};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&how);
    if (wsi) {
        c->wsi = wsi;
        return c;
    }
    if (server->adopted == adopted) { // it was not even begun; else it is told of the end
        ws_connection_known(c);
        list_remove(&c->link);
        server->counters.connections--;
        free(c);
    }
    return NULL;
}
