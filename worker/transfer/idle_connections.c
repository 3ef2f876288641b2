// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/idle_connections.h"

#include "common/base/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEEPALIVE_S = 60 }; // networks forget idle connections

static int members_of(const struct idle_connections *c)
{
    return c->n_receivers + c->n_senders;
}

void idle_connections_drop(struct idle_connections *c)
{
    for (int i = 0; c->id && i < members_of(c); i++)
        if (c->links[i] >= 0)
            close(c->links[i]);
    free(c->links);
    *c = (struct idle_connections){.id = 0};
}

// Members send nothing between transfers. If there is something to read, the connection has ended, or is broken.
uint64_t idle_connections_id(struct idle_connections *c)
{
    bool good = c->id != 0;
    for (int i = 0; good && i < members_of(c); i++) {
        struct pollfd p = {.fd = c->links[i], .events = POLLIN};
        good = c->links[i] < 0 || poll(&p, 1, 0) == 0;
    }
    if (!good)
        idle_connections_drop(c);
    return c->id;
}

int idle_connections_use(struct idle_connections *c, uint64_t id, struct participant *p, struct err *err)
{
    const struct participant_config *o = &p->config;
    if (!id || c->id != id) {
        idle_connections_drop(c);
        return err_set(err, ERR_UNAVAILABLE, "the connections of the last transfer have ended: start it again");
    }
    if (c->index != o->index || c->n_receivers != o->n_receivers || c->n_senders != o->n_senders) {
        idle_connections_drop(c);
        return 0;
    }
    memcpy(p->dialog.links, c->links, (size_t)p->dialog.n * sizeof *c->links);
    free(TAKE_PTR(c->links));
    c->id = 0;
    return 1;
}

// The center has a connection to each member, the witness to each receiver.
static bool is_linked(const struct participant *p, int member)
{
    const struct participant_config *o = &p->config;
    bool is_witness = p->witness >= 0 && o->index == p->witness;
    bool has_witness = p->witness >= 0 && participant_is_receiver(p);
    if (member == o->index)
        return false;
    return member == 0 || o->index == 0 || (is_witness && member < o->n_receivers) ||
           (has_witness && member == p->witness);
}

static void stay_known(int fd)
{
    const int on = 1, after = KEEPALIVE_S; // sockets other than TCP refuse the options, and do not need them
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof after);
}

void idle_connections_keep(struct idle_connections *c, uint64_t id, struct participant *p)
{
    const struct participant_config *o = &p->config;
    idle_connections_drop(c);
    if (o->index == p->witness && participant_may_be_asked(p))
        return;
    for (int i = 0; i < p->dialog.n; i++)
        if (is_linked(p, i) != (p->dialog.links[i] >= 0))
            return;
    *c = (struct idle_connections){id, o->index, o->n_receivers, o->n_senders, p->witness, TAKE_PTR(p->dialog.links)};
    for (int i = 0; i < p->dialog.n; i++)
        if (c->links[i] >= 0)
            stay_known(c->links[i]);
    p->dialog.n = 0;
}
