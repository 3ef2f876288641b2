// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/star_frame.h"

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
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

int star_frame_send(int fd, enum star_frame_kind kind, const void *body, size_t len, int64_t until)
{
    struct star_frame f = {kind, (uint32_t)len};
    int r = transfer(fd, true, (char *)&f, sizeof f, until);
    return r < 0 ? r : transfer(fd, true, (char *)body, len, until);
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
