// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/star_frame.h"

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

static int ready(int fd, short events, int64_t until)
{
    for (;;) {
        int64_t left = until - clock_mono_ms(&clock_system);
        struct pollfd p = {.fd = fd, .events = events};
        if (left < 0)
            return ERR_TIMEOUT;
        int n = poll(&p, 1, (int)MIN(left + 1, (int64_t)1000));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return ERR_GONE;
    }
}

static int transfer(int fd, bool out, char *data, size_t len, int64_t until)
{
    while (len) {
        ssize_t n = out ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, data, len, MSG_DONTWAIT);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return ERR_GONE;
        } else {
            int r = ready(fd, out ? POLLOUT : POLLIN, until);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

// Sends head and body together, as much as the socket takes: so they are one packet on the network.
int star_frame_send(int fd, uint32_t kind, const void *body, size_t len, int64_t until)
{
    struct star_frame f = {kind, (uint32_t)len};
    struct iovec parts[2] = {{&f, sizeof f}, {(void *)body, len}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return ERR_GONE;
    size_t sent = (size_t)MAX(n, (ssize_t)0), head = MIN(sent, sizeof f);
    int r = transfer(fd, true, (char *)&f + head, sizeof f - head, until);
    return r < 0 ? r : transfer(fd, true, (char *)body + (sent - head), len - (sent - head), until);
}

int star_frame_take(int fd, struct star_frame *ret, char **ret_body, int64_t until)
{
    int r = transfer(fd, false, (char *)ret, sizeof *ret, until);
    *ret_body = NULL;
    if (r == 0 && ret->len > STAR_FRAME_MAX)
        return ERR_GONE;
    if (r == 0) {
        *ret_body = xcalloc(1, (size_t)ret->len + 1);
        r = transfer(fd, false, *ret_body, ret->len, until);
    }
    return r;
}
