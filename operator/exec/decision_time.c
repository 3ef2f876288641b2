// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/decision_time.h"

#include "common/base/log.h"

int64_t decision_time_now(struct decision_time *t)
{
    int64_t now = clock_wall_ms(t->clock), jump = clock_watch_jump(&t->watch, now, clock_mono_ms(t->clock));
    if (!jump)
        return now;
    log_warn("the clock of this machine was set", "by_ms", log_i64(jump), NULL);
    t->leading_ms += t->leading_ms ? jump : 0;
    t->listening_ms += t->listening_ms ? jump : 0;
    cluster_clock_moved(t->cluster, jump);
    if (t->agents)
        agents_clock_moved(t->agents, jump);
    return now;
}

void decision_time_saw(struct decision_time *t, const struct object *old, const struct object *now)
{
    if (old && now && node_of(old)->ready && !node_of(now)->ready)
        cluster_note_silence(t->cluster, now->meta.name, decision_time_now(t));
}
