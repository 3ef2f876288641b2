// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_connection.h"

#include "common/base/mem.h"
#include "common/ws/ws_porch.h"

#include <stdlib.h>

void ws_connection_known(struct ws_connection *c)
{
    if (c->known)
        return;
    c->known = true;
    list_remove(&c->stranger);
    c->server->n_strangers--;
}

void ws_connection_adopt(struct ws_listener *l, int fd, bool refused)
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
        ws_server_sweep_next(server);
    lws_adopt_desc_t how = {
        .vh = l->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | LWS_ADOPT_ALLOW_SSL, .fd.sockfd = fd, .opaque = c};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&how);
    if (wsi && l->tls) {
        c->wsi = wsi;
        ws_porch_expect(c);
    } else if (!wsi && server->adopted == adopted) {
        ws_connection_known(c); // it was not even begun; else it is told of the end
        list_remove(&c->link);
        server->counters.connections--;
        free(c);
    }
}
