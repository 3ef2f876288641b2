// SPDX-License-Identifier: Apache-2.0
#include "worker/host/archive_seeker.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 6 * 1000 }; // if a proxy has not answered by then, the seeker asks again, perhaps another proxy

struct archive_seeker {
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
    struct archive_seeker *s = ctx;
    char sha256[ARCHIVE_SHA256_LEN + 1];
    pthread_mutex_lock(&s->mutex);
    const struct archive_piece p = {.sha256 = sha256, .offset = s->offset};
    unsigned nth = s->nth;
    memcpy(sha256, s->sha256, sizeof sha256);
    pthread_mutex_unlock(&s->mutex);
    if (nth)
        s->ask(s->ctx, &p, nth);
}

struct archive_seeker *archive_seeker_new(struct loop *loop,
                                          void (*ask)(void *ctx, const struct archive_piece *p, unsigned nth),
                                          void *ctx)
{
    struct archive_seeker *s = xcalloc(1, sizeof *s);
    s->ask = ask;
    s->ctx = ctx;
    s->wakeup = loop_wakeup_new(loop, on_wakeup, s);
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->changed);
    return s;
}

void archive_seeker_free(struct archive_seeker *s)
{
    if (!s)
        return;
    loop_wakeup_free(s->wakeup);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void archive_seeker_bring(struct archive_seeker *s, const struct archive_piece *p)
{
    pthread_mutex_lock(&s->mutex);
    if (s->nth && s->got < 0 && s->offset == p->offset && str_eq(s->sha256, p->sha256) && (p->missing || p->len)) {
        s->got = p->missing ? 0 : (int64_t)p->len;
        if (s->got)
            memcpy(s->out, p->data, p->len);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
}

int64_t archive_seeker_wait(struct archive_seeker *s, const char *sha256, int64_t offset, char *out, int64_t ms)
{
    int64_t now = clock_mono_ms(&clock_system), end = now + ms, again = now;
    pthread_mutex_lock(&s->mutex);
    snprintf(s->sha256, sizeof s->sha256, "%s", sha256);
    s->offset = offset;
    s->out = out;
    s->got = -1;
    while (s->got < 0 && now < end) {
        if (now >= again) {
            s->nth++;
            again = now + AGAIN_MS;
            loop_wakeup_signal(s->wakeup);
        }
        (void)cond_wait_until(&s->changed, &s->mutex, MIN(end, again));
        now = clock_mono_ms(&clock_system);
    }
    int64_t got = s->got < 0 ? ERR_TIMEOUT : s->got;
    s->nth = 0;
    s->out = NULL;
    pthread_mutex_unlock(&s->mutex);
    return got;
}
