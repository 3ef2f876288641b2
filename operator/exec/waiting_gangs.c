// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/waiting_gangs.h"

#include "common/base/mem.h"

#include <stdlib.h>

enum { DEBOUNCE_MS = 20 };

struct waiting_gangs {
    const struct cluster *cluster;
    struct line *line;
    struct loop_timer *timer;
    uint64_t epoch; // the epoch of the cluster at the last wake-up
    struct {
        void (*wake)(void *ctx, const char *ns, const char *name);
        void *ctx;
    } wakers[KIND_COUNT];
};

static void on_time(void *ctx)
{
    struct waiting_gangs *w = ctx;
    w->epoch = cluster_epoch(w->cluster);
    for (size_t i = 0; i < line_length(w->line); i++) {
        const struct line_member *m = line_at(w->line, i);
        waiting_gangs_wake(w, m->kind, m->ns, m->name);
    }
}

struct waiting_gangs *waiting_gangs_new(struct loop *loop, const struct cluster *cluster)
{
    struct waiting_gangs *w = xcalloc(1, sizeof *w);
    w->cluster = cluster;
    w->line = line_new();
    w->timer = loop_timer_new(loop, on_time, w);
    return w;
}

void waiting_gangs_free(struct waiting_gangs *w)
{
    if (!w)
        return;
    loop_timer_free(w->timer);
    line_free(w->line);
    free(w);
}

const struct line *waiting_gangs_line(const struct waiting_gangs *w)
{
    return w->line;
}

void waiting_gangs_wake_by(struct waiting_gangs *w, enum kind kind,
                           void (*fn)(void *ctx, const char *ns, const char *name), void *ctx)
{
    w->wakers[kind].wake = fn;
    w->wakers[kind].ctx = ctx;
}

void waiting_gangs_wake(const struct waiting_gangs *w, enum kind kind, const char *ns, const char *name)
{
    if (w->wakers[kind].wake)
        w->wakers[kind].wake(w->wakers[kind].ctx, ns, name);
}

static void wake_soon(struct waiting_gangs *w)
{
    if (!loop_timer_armed(w->timer))
        loop_timer_arm(w->timer, DEBOUNCE_MS);
}

void waiting_gangs_look(struct waiting_gangs *w)
{
    if (cluster_epoch(w->cluster) != w->epoch)
        wake_soon(w);
}

void waiting_gangs_decided(struct waiting_gangs *w, const char *uid, const struct plan *p, int64_t now_ms)
{
    bool tells = p && p->line && (p->waits_for_room || p->line->outcome == LINE_TAKES);
    bool freed = tells ? line_tell(w->line, p->line, now_ms) : line_leave(w->line, uid);
    if (freed)
        wake_soon(w);
    else if (p && p->waits_for_room)
        waiting_gangs_look(w); // room may have appeared between the wake-up and this decision: the timer looks again
}
