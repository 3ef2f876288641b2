// SPDX-License-Identifier: Apache-2.0
#include "common/ws/pool.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct pool {
    pthread_mutex_t lock;
    char *base;
    size_t size, steps, used;
    int fd;
    uint32_t taken[]; // at the first step of what was taken: how many it has; elsewhere 0
};

struct pool *pool_new(size_t size, struct err *err)
{
    size_t steps = size / POOL_STEP;
    int fd = memfd_create("cadre", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert(steps && size % POOL_STEP == 0);
    void *base = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        err_set(err, ERR_UNAVAILABLE, "no shared memory of %zu bytes: %s", size, strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct pool *p = xcalloc(1, sizeof *p + steps * sizeof *p->taken);
    pthread_mutex_init(&p->lock, NULL);
    p->base = base;
    p->size = size;
    p->steps = steps;
    p->fd = fd;
    return p;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    munmap(p->base, p->size);
    close(p->fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

// The first free place of n steps; `steps` = there is none.
static size_t find(const struct pool *p, size_t n)
{
    for (size_t at = 0; at + n <= p->steps;) {
        size_t room = 0;
        while (room < n && !p->taken[at + room])
            room++;
        if (room == n)
            return at;
        at += room + p->taken[at + room];
    }
    return p->steps;
}

void *pool_take(struct pool *p, size_t len)
{
    size_t n = (len + POOL_STEP - 1) / POOL_STEP;
    if (n == 0 || n > p->steps)
        return NULL;
    pthread_mutex_lock(&p->lock);
    size_t at = find(p, n);
    if (at < p->steps) {
        p->taken[at] = (uint32_t)n;
        p->used += n * POOL_STEP;
    }
    pthread_mutex_unlock(&p->lock);
    return at < p->steps ? p->base + at * POOL_STEP : NULL;
}

void pool_give(struct pool *p, const void *data)
{
    size_t at = (size_t)((const char *)data - p->base) / POOL_STEP;
    pthread_mutex_lock(&p->lock);
    assert(at < p->steps && p->taken[at]);
    p->used -= p->taken[at] * POOL_STEP;
    p->taken[at] = 0;
    pthread_mutex_unlock(&p->lock);
}

int pool_fd(const struct pool *p)
{
    return p->fd;
}

size_t pool_size(const struct pool *p)
{
    return p->size;
}

const char *pool_base(const struct pool *p)
{
    return p->base;
}

size_t pool_used(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    size_t used = p->used;
    pthread_mutex_unlock(&p->lock);
    return used;
}

// Views

static int check(int fd, size_t size, struct err *err)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return err_set(err, ERR_PROTO, "shared memory must be a memfd that is sealed against shrinking and growing");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 0 || (size_t)st.st_size != size || !size ||
        size > POOL_VIEW_MAX)
        return err_set(err, ERR_PROTO, "shared memory of %lld bytes was said to have %zu; at most %zu",
                       (long long)st.st_size, size, POOL_VIEW_MAX);
    return 0;
}

static char *map_own(int fd, size_t size)
{
    void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    return own == MAP_FAILED ? NULL : own;
}

int pool_view_open(struct pool_view *v, pid_t pid, int fd, size_t size, bool own, struct err *err)
{
    char path[64], target[64];
    *v = (struct pool_view){.fd = -1};
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[MAX(n, (ssize_t)0)] = '\0';
    if (n >= 0 && !str_starts(target, "/memfd:")) // what else there is may be dangerous to open
        return err_set(err, ERR_PROTO, "descriptor %d of process %ld is not a memfd", fd, (long)pid);
    v->fd = n < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (v->fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open %s: %s", path, strerror(errno));
    int r = check(v->fd, size, err);
    void *base = r == 0 ? mmap(NULL, size, PROT_READ, MAP_SHARED, v->fd, 0) : MAP_FAILED;
    if (r == 0 && base == MAP_FAILED)
        r = err_set(err, ERR_UNAVAILABLE, "cannot map shared memory of %zu bytes: %s", size, strerror(errno));
    if (r < 0) {
        close(v->fd);
        v->fd = -1;
        return r;
    }
    v->base = base;
    v->own = own ? map_own(v->fd, size) : NULL;
    v->size = size;
    return 0;
}

void pool_view_close(struct pool_view *v)
{
    if (v->fd < 0)
        return;
    munmap((void *)v->base, v->size);
    if (v->own)
        munmap(v->own, v->size);
    close(v->fd);
    *v = (struct pool_view){.fd = -1};
}
