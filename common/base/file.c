// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int read_all(int fd, const char *path, struct buf *ret, struct err *err)
{
    enum { STEP = 4096 };
    for (;;) {
        size_t room = ret->cap - ret->len < STEP ? ret->cap - ret->len : STEP;
        char over;
        (void)buf_reserve(ret, room);
        ssize_t n = room ? read(fd, ret->data + ret->len, room) : read(fd, &over, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            break;
        if (!room)
            return err_set(err, ERR_LIMIT, "%s is longer than %zu bytes", path, ret->cap);
        ret->len += (size_t)n;
    }
    ret->data[ret->len] = '\0';
    return 0;
}

int file_read(const char *path, struct buf *ret, struct err *err)
{
    _cleanup_(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read %s: %s", path, strerror(errno));
    return read_all(fd, path, ret, err);
}

void file_first_line(const char *path, char *out, size_t size)
{
    _cleanup_(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;
    out[MAX(n, 0)] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

void file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool file_write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return false;
        data += MAX(done, 0);
        n -= (size_t)MAX(done, 0);
    }
    return true;
}

int file_in_memory(const char *name, const struct buf *b)
{
    int fd = b->over ? -1 : memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0 && file_write_all(fd, b->data, b->len) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    file_close(&fd);
    return -1;
}

bool file_send(int to, const char *bytes, size_t len, const int *fds, size_t n)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FILE_SEND_MAX * sizeof(int))];
    } control = {0};
    struct iovec data = {(void *)bytes, len};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof *fds)};
    control.header = (struct cmsghdr){CMSG_LEN(n * sizeof *fds), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), fds, n * sizeof *fds);
    return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}
