// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/install.h"

#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return -1;
        data += MAX(done, 0);
        n -= (size_t)MAX(done, 0);
    }
    return 0;
}

static int copy(int from, int to)
{
    _cleanup_(free_p) char *block = xmalloc(256 * 1024);
    for (ssize_t n; (n = read(from, block, 256 * 1024)) != 0;)
        if (n < 0 ? errno != EINTR : write_all(to, block, (size_t)n) != 0)
            return -1;
    return fchmod(to, 0755);
}

int install_program(const char *dir, struct err *err)
{
    _cleanup_(free_p) char *path = xasprintf("%s/cadre-agent", dir), *part = xasprintf("%s.part", path);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1, r = 0;
    if (from < 0)
        return err_set(err, ERR_IO, "cannot read /proc/self/exe: %s", strerror(errno));
    to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (to < 0)
        r = err_set(err, ERR_IO, "cannot install into %s: %s", dir, strerror(errno));
    else if (copy(from, to) != 0)
        r = err_set(err, ERR_IO, "cannot write %s: %s", part, strerror(errno));
    close(from);
    if (to >= 0 && close(to) != 0 && r == 0)
        r = err_set(err, ERR_IO, "cannot write %s: %s", part, strerror(errno));
    if (r == 0 && rename(part, path) != 0)
        r = err_set(err, ERR_IO, "cannot rename %s: %s", part, strerror(errno));
    if (r < 0 && to >= 0)
        unlink(part);
    return r;
}
