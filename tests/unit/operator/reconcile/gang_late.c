// SPDX-License-Identifier: Apache-2.0
// Creations of pods that succeed after their operator has given them up.
#include "tests/unit/operator/reconcile/gang_world.h"

int sim_create_pod_late(struct sim_world *w, const char *body)
{
    if (w->n_late < SIM_LATE)
        w->late[w->n_late++] =
            (struct sim_late){arena_strdup(&w->arena, body), w->now_ms + rand_range(&w->rand, 0, 30000)};
    return ERR_TIMEOUT;
}

void sim_land(struct sim_world *w)
{
    struct err ignored = ERR_INIT;
    for (size_t i = 0; i < w->n_late;) {
        if (w->late[i].at_ms > w->now_ms && !w->calm) {
            i++;
            continue;
        }
        sim_create_pod(w, w->late[i].body, false, &ignored);
        w->late[i] = w->late[--w->n_late];
    }
}
