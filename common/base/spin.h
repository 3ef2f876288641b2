// SPDX-License-Identifier: Apache-2.0
// Whether to poll for the next event for some microseconds before sleeping. Waking up takes longer than a fast method:
// an idle core has to leave its sleep first, on a virtual machine with the host's help, and the caller waits for all of
// it. So it polls while recent waits were short, and sleeps if they were not, or if others need the core. It has no
// clock and no I/O. One thread. Gain: a call at a time over TLS takes 0.6x of the time (bench/calls).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    SPIN_US = 100, // how long it looks
    // A sleep: half of it or more went into waking up this thread and the one that it waited for.
    SPIN_SHORT_US = 2 * SPIN_US,
    // A look took this long: other threads ran meanwhile. They make way for a thread that wakes up.
    SPIN_LATE_US = 4 * SPIN_US,
    SPIN_TRUST = 8,      // it looks from this score on ...
    SPIN_SCORE_MAX = 16, // ... which goes up by one with a short wait, and down by two with a long one
    // After a late look, it does not look again until it has slept for this many times the look's duration. So late
    // looks cost at most a twentieth of the time, and a few looks of a millisecond in each second cost almost nothing.
    SPIN_REST = 20,
    SPIN_REST_US_MAX = 1000 * 1000,
};

struct spin {
    int score;
    int64_t rest_us; // it does not look for this long
};

#define SPIN_INIT ((struct spin){0})

// Ask it before a wait.
bool spin_wanted(const struct spin *s);
// It looked for `us`. Not `found`: it sleeps now.
void spin_looked(struct spin *s, int64_t us, bool found);
// It slept without a look. `us` ends when the events were dealt with.
void spin_slept(struct spin *s, int64_t us);
