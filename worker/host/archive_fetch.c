// SPDX-License-Identifier: Apache-2.0
#include "worker/host/archive_fetch.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 6 * 1000 }; // if a proxy has not answered by then, this asks again, perhaps another proxy

struct archive_fetch {
    void (*ask)(void *ctx, const struct archive_piece *p, unsigned nth);
    void *ctx;
    struct loop_wakeup *wakeup;
    pthread_mutex_t mutex; // of the following members
    pthread_cond_t changed;
    char sha256[ARCHIVE_SHA256_LEN + 1];
    int64_t offset;
    unsigned nth; // 0 = nobody waits
    char *out;
    int64_t got; // -1 = nothing yet
};

static void on_wakeup(void *ctx)
{
    struct archive_fetch *f = ctx;
    char sha256[ARCHIVE_SHA256_LEN + 1];
    pthread_mutex_lock(&f->mutex);
    const struct archive_piece p = {.sha256 = sha256, .offset = f->offset};
    unsigned nth = f->nth;
    memcpy(sha256, f->sha256, sizeof sha256);
    pthread_mutex_unlock(&f->mutex);
    if (nth)
        f->ask(f->ctx, &p, nth);
}

struct archive_fetch *archive_fetch_new(struct loop *loop,
                                        void (*ask)(void *ctx, const struct archive_piece *p, unsigned nth), void *ctx)
{
    struct archive_fetch *f = xcalloc(1, sizeof *f);
    f->ask = ask;
    f->ctx = ctx;
    f->wakeup = loop_wakeup_new(loop, on_wakeup, f);
    pthread_mutex_init(&f->mutex, NULL);
    cond_init(&f->changed);
    return f;
}

void archive_fetch_free(struct archive_fetch *f)
{
    if (!f)
        return;
    loop_wakeup_free(f->wakeup);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

void archive_fetch_deliver(struct archive_fetch *f, const struct archive_piece *p)
{
    pthread_mutex_lock(&f->mutex);
    if (f->nth && f->got < 0 && f->offset == p->offset && str_eq(f->sha256, p->sha256) && (p->missing || p->len)) {
        f->got = p->missing ? 0 : (int64_t)p->len;
        if (f->got)
            memcpy(f->out, p->data, p->len);
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->mutex);
}

int64_t archive_fetch_wait(struct archive_fetch *f, const char *sha256, int64_t offset, char *out, int64_t ms)
{
    int64_t now = clock_mono_ms(&clock_system), end = now + ms, again = now;
    pthread_mutex_lock(&f->mutex);
    snprintf(f->sha256, sizeof f->sha256, "%s", sha256);
    f->offset = offset;
    f->out = out;
    f->got = -1;
    while (f->got < 0 && now < end) {
        if (now >= again) {
            f->nth++;
            again = now + AGAIN_MS;
            loop_wakeup_signal(f->wakeup);
        }
        (void)cond_wait_until(&f->changed, &f->mutex, MIN(end, again));
        now = clock_mono_ms(&clock_system);
    }
    int64_t got = f->got < 0 ? ERR_TIMEOUT : f->got;
    f->nth = 0;
    f->out = NULL;
    pthread_mutex_unlock(&f->mutex);
    return got;
}
