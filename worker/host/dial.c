// SPDX-License-Identifier: Apache-2.0
#include "worker/host/dial.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum { SLICE_MS = 100 };

int dial_wait(int fd, short events, int64_t ms, const atomic_bool *canceled)
{
    int64_t end = clock_mono_ms(&clock_system) + ms;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        if (poll(&p, 1, SLICE_MS) > 0)
            return 0;
        if (atomic_load(canceled))
            return ERR_CANCELED;
        if (clock_mono_ms(&clock_system) >= end)
            return ERR_TIMEOUT;
    }
}

static int look_up(const char *at, struct addrinfo **ret)
{
    _cleanup_(free_p) char *host = NULL;
    const char *port;
    if (!host_port_split(at, &host, &port))
        return ERR_INVALID;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, port, &hints, ret) == 0 ? 0 : ERR_INVALID;
}

static int connect_to(const struct addrinfo *to, int fd, const atomic_bool *canceled, struct err *err)
{
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno));
    int r = dial_wait(fd, POLLOUT, DIAL_MS, canceled), why = 0;
    socklen_t len = sizeof why;
    if (r == ERR_CANCELED)
        return err_set(err, r, "canceled");
    if (r == ERR_TIMEOUT)
        return err_set(err, ERR_UNAVAILABLE, "nobody answers there");
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) != 0 || why)
        return err_set(err, ERR_UNAVAILABLE, "%s", strerror(why ? why : errno));
    return 0;
}

int dial(const char *at, const atomic_bool *canceled, int *ret, struct err *err)
{
    struct addrinfo *to = NULL;
    *ret = -1;
    if (look_up(at, &to) < 0)
        return err_set(err, ERR_UNAVAILABLE, "this is not an address");
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd < 0 ? err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno)) : connect_to(to, fd, canceled, err);
    freeaddrinfo(to);
    if (r == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); // questions are short, and wait for answers
        *ret = fd;
    }
    if (r < 0)
        file_close(&fd);
    return r;
}
