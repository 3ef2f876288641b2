// SPDX-License-Identifier: Apache-2.0
#include "worker/host/progress.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct progress {
    void (*tell)(void *ctx, const char *body, size_t len);
    void *ctx;
    struct loop_wakeup *wakeup;
    struct loop_timer *timer;
    bool told; // a move was reported
    pthread_mutex_t mutex;
    struct list parts; // under the mutex
};

static void look(void *ctx)
{
    struct progress *p = ctx;
    uint64_t done = 0, bytes = 0;
    char body[PROGRESS_TEXT_SIZE];
    pthread_mutex_lock(&p->mutex);
    bool moving = !list_empty(&p->parts);
    LIST_FOREACH(l, &p->parts) {
        struct progress_part *part = CONTAINER_OF(l, struct progress_part, link);
        done += atomic_load(&part->bytes.done); // read first, so that it is never above the total
        bytes += atomic_load(&part->bytes.total);
    }
    pthread_mutex_unlock(&p->mutex);
    if (moving)
        loop_timer_arm(p->timer, PROGRESS_MS);
    if (!bytes && !p->told)
        return;
    p->told = bytes > 0;
    int len = snprintf(body, sizeof body, "{\"done\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", done, bytes);
    p->tell(p->ctx, body, (size_t)len);
}

struct progress *progress_new(struct loop *loop, void (*tell)(void *ctx, const char *body, size_t len), void *ctx)
{
    struct progress *p = xcalloc(1, sizeof *p);
    p->tell = tell;
    p->ctx = ctx;
    p->wakeup = loop_wakeup_new(loop, look, p);
    p->timer = loop_timer_new(loop, look, p);
    list_init(&p->parts);
    pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void progress_free(struct progress *p)
{
    if (!p)
        return;
    loop_wakeup_free(p->wakeup);
    loop_timer_free(p->timer);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

void progress_begin(struct progress *p, struct progress_part *part)
{
    atomic_store(&part->bytes.done, 0);
    atomic_store(&part->bytes.total, 0);
    pthread_mutex_lock(&p->mutex);
    list_append(&p->parts, &part->link);
    pthread_mutex_unlock(&p->mutex);
    loop_wakeup_signal(p->wakeup);
}

void progress_end(struct progress *p, struct progress_part *part)
{
    pthread_mutex_lock(&p->mutex);
    list_remove(&part->link);
    pthread_mutex_unlock(&p->mutex);
    loop_wakeup_signal(p->wakeup);
}
