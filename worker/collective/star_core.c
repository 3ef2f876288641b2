// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/star_core.h"

#include "common/base/clock.h"

#include <stdio.h>
#include <string.h>

int64_t star_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

void star_send_all(struct star *s, enum star_frame_kind kind, const char *text)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].fd >= 0)
            (void)star_frame_send(s->links[i].fd, kind, text, strlen(text), star_now_ms() + STAR_SEND_MS);
}

void star_break_all(struct star *s, const char *reason)
{
    pthread_mutex_lock(&s->mutex);
    bool first = !s->broken;
    if (first) {
        s->broken = true;
        snprintf(s->reason, sizeof s->reason, "%s", reason);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    if (first) {
        star_send_all(s, FRAME_BROKEN, reason);
        s->on_broken(s->ctx);
    }
}
