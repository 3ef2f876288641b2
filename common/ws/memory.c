// SPDX-License-Identifier: Apache-2.0
#include "common/ws/memory.h"

#include "common/base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

struct memory {
    struct area area;
    struct pool *pool;
};

struct view {
    struct area area;
    struct pool_view view;
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

static void end_view(struct area *a)
{
    struct view *v = CONTAINER_OF(a, struct view, area);
    pool_view_close(&v->view);
    free(v);
}

struct area *memory_open(pid_t pid, int fd, size_t size, bool own, struct err *err)
{
    struct pool_view view;
    if (pool_view_open(&view, pid, fd, size, own, err) < 0)
        return NULL;
    struct view *v = xmalloc(sizeof *v);
    *v = (struct view){.view = view,
                       .area = {.fd = view.fd, .base = view.base, .size = view.size, .own = view.own, .end = end_view}};
    area_init(&v->area);
    return &v->area;
}

bool memory_reaches(pid_t pid, int64_t fd)
{
    struct pool_view view;
    struct err ignored = ERR_INIT;
    if (pid <= 0 || fd < 0 || fd > INT_MAX || pool_view_open(&view, pid, (int)fd, MEMORY_PROBE, false, &ignored) < 0)
        return false;
    pool_view_close(&view);
    return true;
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
