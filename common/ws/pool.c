// SPDX-License-Identifier: Apache-2.0
#include "common/ws/pool.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct pool {
    pthread_mutex_t lock;
    char *base;
    size_t size, steps;
    int fd;
    uint32_t taken[]; // at the first step of a block that is taken: its number of steps; elsewhere 0
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
        file_close(&fd);
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

// The first free place of n steps; `steps` if there is none.
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
    if (at < p->steps)
        p->taken[at] = (uint32_t)n;
    pthread_mutex_unlock(&p->lock);
    return at < p->steps ? p->base + at * POOL_STEP : NULL;
}

void pool_give(struct pool *p, const void *data)
{
    size_t at = (size_t)((const char *)data - p->base) / POOL_STEP;
    pthread_mutex_lock(&p->lock);
    assert(at < p->steps && p->taken[at]);
    p->taken[at] = 0;
    pthread_mutex_unlock(&p->lock);
}

int pool_fd(const struct pool *p)
{
    return p->fd;
}

const char *pool_base(const struct pool *p)
{
    return p->base;
}
