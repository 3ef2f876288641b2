// SPDX-License-Identifier: Apache-2.0
#include "common/ws/memory.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define VIEW_MAX ((size_t)4 << 30)

struct memory {
    struct area area;
    struct pool *pool;
};

static void give(struct area *a, const char *data, uint32_t tag)
{
    (void)tag;
    pool_give(CONTAINER_OF(a, struct memory, area)->pool, data);
}

static void end(struct area *a)
{
    struct memory *m = CONTAINER_OF(a, struct memory, area);
    pool_free(m->pool);
    free(m);
}

struct memory *memory_new(size_t size, struct err *err)
{
    struct pool *pool = pool_new(size, err);
    if (!pool)
        return NULL;
    struct memory *m = xmalloc(sizeof *m);
    *m = (struct memory){
        .pool = pool, .area = {.fd = pool_fd(pool), .base = pool_base(pool), .size = size, .give = give, .end = end}};
    area_init(&m->area);
    return m;
}

void memory_free(struct memory *m)
{
    area_unref(m ? &m->area : NULL);
}

struct area *memory_area(struct memory *m)
{
    return &m->area;
}

struct pool *memory_pool(struct memory *m)
{
    return m->pool;
}

struct blob *memory_adopt(struct memory *m, char *data, size_t len)
{
    return blob_in_area(&m->area, data, len, 0);
}

struct blob *memory_blob(struct memory *m, size_t len)
{
    char *data = m ? pool_take(m->pool, len) : NULL;
    return data ? memory_adopt(m, data, len) : NULL;
}

// Memory of other processes

static void end_view(struct area *a)
{
    munmap((void *)a->base, a->size);
    if (a->own)
        munmap(a->own, a->size);
    close(a->fd);
    free(a);
}

static int check(int fd, size_t size, struct err *err)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return err_set(err, ERR_PROTO, "shared memory must be a memfd that is sealed against shrinking and growing");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 0 || (size_t)st.st_size != size || !size ||
        size > VIEW_MAX)
        return err_set(err, ERR_PROTO,
                       "the peer announced %zu bytes of shared memory, but it has %lld; at most %zu are allowed", size,
                       (long long)st.st_size, VIEW_MAX);
    return 0;
}

static char *map_own(int fd, size_t size)
{
    void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    return own == MAP_FAILED ? NULL : own;
}

static int open_memfd(pid_t pid, int fd, struct err *err)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[MAX(n, (ssize_t)0)] = '\0';
    if (n >= 0 && !str_starts(target, "/memfd:")) // other files may be dangerous to open
        return err_set(err, ERR_PROTO, "descriptor %d of process %ld is not a memfd", fd, (long)pid);
    int own = n < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return own < 0 ? err_set(err, ERR_UNAVAILABLE, "cannot open %s: %s", path, strerror(errno)) : own;
}

struct area *memory_open(pid_t pid, int fd, size_t size, bool own, struct err *err)
{
    int opened = open_memfd(pid, fd, err);
    if (opened < 0)
        return NULL;
    void *base = check(opened, size, err) == 0 ? mmap(NULL, size, PROT_READ, MAP_SHARED, opened, 0) : MAP_FAILED;
    if (base == MAP_FAILED) {
        if (!err->code)
            err_set(err, ERR_UNAVAILABLE, "cannot map shared memory of %zu bytes: %s", size, strerror(errno));
        close(opened);
        return NULL;
    }
    struct area *a = xmalloc(sizeof *a);
    *a = (struct area){
        .fd = opened, .base = base, .size = size, .own = own ? map_own(opened, size) : NULL, .end = end_view};
    area_init(a);
    return a;
}

bool memory_reaches(pid_t pid, int64_t fd)
{
    struct err ignored = ERR_INIT;
    struct area *a =
        pid > 0 && fd >= 0 && fd <= INT_MAX ? memory_open(pid, (int)fd, MEMORY_PROBE, false, &ignored) : NULL;
    area_unref(a);
    return a;
}

pid_t memory_peer(int socket_fd)
{
    struct ucred who = {.pid = 0};
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof sa, size = sizeof who;
    if (getsockname(socket_fd, (struct sockaddr *)&sa, &len) < 0 || sa.ss_family != AF_UNIX ||
        getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return 0;
    return who.pid;
}
