// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_connection.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <sys/socket.h>

#define SWEEPS 20u    // parts of a round over all connections, at most
#define SWEEP_MIN 64u // connections in a part, unless there are fewer

// A round over all connections has parts, so that thousands of pings do not go out at once. Few connections
// need one part, and idle ones no timer: a server with nothing to do sleeps.
size_t ws_connections_sweep_parts(const struct ws_server *server)
{
    size_t parts = (server->counters.connections + SWEEP_MIN - 1) / SWEEP_MIN;
    return list_empty(&server->paused) ? MIN(parts, SWEEPS) : SWEEPS;
}

void ws_connections_sweep_next(struct ws_server *server)
{
    size_t parts = ws_connections_sweep_parts(server);
    if (parts && server->calm < server->counters.connections)
        loop_timer_arm(server->sweep, MAX(server->config.ping_ms / (int64_t)parts, 1));
}

void ws_connections_busy(struct ws_server *server)
{
    server->calm = 0;
    if (!loop_timer_armed(server->sweep))
        ws_connections_sweep_next(server);
}

static void note_request(struct ws_connection *c)
{
    c->server->n_without_request -= !list_empty(&c->without_request);
    list_remove(&c->without_request);
}

void ws_connection_known(struct ws_connection *c)
{
    c->stage = WS_REQUEST;
    note_request(c);
}

// Ends the oldest one without a request. The kernel reports the end to ws_preread.c, which then lets libwebsockets
// close it.
void ws_connections_end_oldest(struct ws_server *server)
{
    struct ws_connection *oldest = CONTAINER_OF(server->without_request.next, struct ws_connection, without_request);
    server->counters.turned_away++;
    note_request(oldest);
    shutdown(oldest->fd, SHUT_RDWR);
}

void ws_connection_hang_up(struct ws_connection *c)
{
    if (!c->hung_up && list_empty(&c->ending))
        list_append(&c->server->ending, &c->ending);
}

// libwebsockets' own ways to hang up need it to be awake, or wait for data that the peer does not read. If it holds
// such data, it must not read the end of the stream: it would then try for 5 s to send the data. The kernel says all
// the time that a Unix socket was hung up, and never that it is writable if it is full. So these turns of the loop
// never wait. libwebsockets drops the data only after a timeout.
struct ws_connection *ws_connections_hang_up_next(struct ws_server *server)
{
    struct list *l = list_pop(&server->ending);
    if (!l)
        return NULL;
    struct ws_connection *c = CONTAINER_OF(l, struct ws_connection, ending);
    c->hung_up = true;
    shutdown(c->fd, SHUT_RDWR);
    bool unsent = lws_partial_buffered(c->wsi);
    lws_rx_flow_control(c->wsi, !unsent);
    if (unsent)
        lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    lws_callback_on_writable(c->wsi);
    return c;
}

struct ws_connection *ws_connection_adopt(struct ws_listener *l, int fd, enum ws_stage stage)
{
    struct ws_server *server = l->server;
    struct ws_connection *c = xcalloc(1, sizeof *c);
    uint64_t adopted = server->adopted;
    c->server = server;
    c->fd = fd;
    c->is_unix = l->unix_path;
    c->stage = stage;
    c->swept_ms = loop_now_ms(server->loop);
    list_init(&c->ending);
    list_append(&server->connections, &c->link);
    list_append(&server->without_request, &c->without_request);
    server->n_without_request++;
    server->counters.connections++;
    ws_connections_busy(server);
    lws_adopt_desc_t how = {
        .vh = l->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | LWS_ADOPT_ALLOW_SSL, .fd.sockfd = fd, .opaque = c};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&how);
    if (wsi) {
        c->wsi = wsi;
        return c;
    }
    if (server->adopted == adopted) { // not even begun; otherwise an event reports its end
        ws_connection_known(c);
        list_remove(&c->link);
        server->counters.connections--;
        free(c);
    }
    return NULL;
}
