// SPDX-License-Identifier: Apache-2.0
// One system measured, each trial beside one of bare pinned pods that ran just before it, while its manager was down.
#pragma once

#include "bench/groups/contest.h"
#include "bench/peers/systems.h"

struct plan {
    int groups;   // at once
    int rounds;   // of such groups
    int singles;  // of one group, a round
    int restarts; // of one group among all of them
};

struct measures {
    struct samples single, many, deleted; // milliseconds until all pods run, run, are gone
    struct samples cpu[COMPONENTS_MAX];   // seconds, creating the groups; the last one is the manager
    struct samples requests, webhooks;    // that the API server answered and made, a group
};

struct idle { // what is used when nothing is asked, a second
    double cpu[COMPONENTS_MAX], requests;
};

struct trials {
    const struct system *system;
    const char *program, *log; // starts the manager, which writes there
    struct measures floor, own;
    struct samples restart; // milliseconds
    struct idle with;       // while the manager is up
    struct proc_memory idle, peak;
};

// Pods that nobody measures, because the first of a new cluster pay for what the later ones find in place; then what is
// used when nothing is asked and no manager is up.
void trials_begin(struct bench *b, const struct plan *plan, struct idle *ret);
void trials_run(struct bench *b, const struct plan *plan, int round, const struct idle *without, struct trials *t);
void measures_total_cpu(const struct world *w, const struct measures *m, struct samples *ret);
