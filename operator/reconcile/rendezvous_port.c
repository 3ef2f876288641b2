// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/rendezvous_port.h"

#include "common/base/str.h"

#include <string.h>

enum { PORT_FIRST = 29500, PORTS = 4096 };

static const struct other_user *other_user_with(const struct group_view *v, const char *host, int32_t port,
                                                struct arena *a)
{
    const char *master = arena_printf(a, "%s:%d", host, port);
    for (size_t i = 0; i < v->n_other_users; i++)
        if (str_eq(v->other_users[i].master, master))
            return &v->other_users[i];
    return NULL;
}

// The port that the group has in this pod, 0 = none. It comes from the last decision, or from the status.
static int32_t present_port(const struct group_view *v, const char *host)
{
    const char *master = v->gang.memory->master ? v->gang.memory->master : v->wg->status.master_addr;
    size_t len = strlen(host);
    int64_t port = 0;
    if (master && strncmp(master, host, len) == 0 && master[len] == ':')
        str_to_i64(master + len + 1, &port);
    return port > 0 && port <= UINT16_MAX ? (int32_t)port : 0;
}

// The first port from `from` on that no other group in this pod has.
static int32_t free_port(const struct group_view *v, const char *host, int32_t from, struct arena *a)
{
    for (int32_t i = 0; i < PORTS; i++) {
        int32_t port = PORT_FIRST + (from - PORT_FIRST + i) % PORTS;
        if (!other_user_with(v, host, port, a))
            return port;
    }
    return from;
}

int32_t rendezvous_port(const struct group_view *v, const char *host, int32_t taken, struct arena *a,
                        const struct other_user **ret_other)
{
    int32_t wanted = v->wg->spec.rendezvous_port, port = present_port(v, host);
    *ret_other = wanted ? other_user_with(v, host, wanted, a) : NULL;
    if (wanted)
        return *ret_other ? 0 : wanted;
    if (port && port == taken)
        return free_port(v, host, port + 1 < PORT_FIRST + PORTS && port >= PORT_FIRST ? port + 1 : PORT_FIRST, a);
    if (!port || other_user_with(v, host, port, a))
        return free_port(v, host, PORT_FIRST, a);
    return port;
}
