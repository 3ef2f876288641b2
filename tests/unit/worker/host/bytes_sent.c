// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/host/bytes_sent.h"

#include <sys/socket.h>

static _Thread_local uint64_t sent;

static ssize_t count(ssize_t n)
{
    sent += n > 0 ? (uint64_t)n : 0;
    return n;
}

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
    return count(__real_send(fd, data, len, flags));
}

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    return count(__real_sendmsg(fd, m, flags));
}

uint64_t bytes_sent(void)
{
    return sent;
}
