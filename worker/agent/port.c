// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Binds like a server: connections of an earlier process that are still closing do not count.
static int try_bind(int family, const struct sockaddr *address, socklen_t len)
{
    int on = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0; // the pod has no addresses of this family
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    int r = bind(fd, address, len) == 0 || errno == EADDRNOTAVAIL ? 0 : errno;
    close(fd);
    return r;
}

int port_try(int port, struct err *err)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int e = try_bind(AF_INET, (const struct sockaddr *)&v4, sizeof v4);
    if (!e)
        e = try_bind(AF_INET6, (const struct sockaddr *)&v6, sizeof v6);
    return e ? err_set(err, ERR_CONFLICT, "rank 0 cannot listen on port %d here: %s", port, strerror(e)) : 0;
}
