// SPDX-License-Identifier: Apache-2.0
// Whether to poll for the next event for some microseconds before sleeping. Waking up takes longer than a fast method:
// an idle core has to leave its sleep first, on a virtual machine with the host's help, and the caller waits for all of
// it. So it polls while recent waits were short, and sleeps if they were not, or if others need the core. It has no
// clock and no I/O. One thread. Gain: a call at a time over TLS takes 0.6x of the time (bench/calls).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    SPIN_US = 100,               // it looks so long
    SPIN_SHORT_US = 2 * SPIN_US, // a sleep: half of it and more was waking up, this thread and the one it waited for
    SPIN_LATE_US = 4 * SPIN_US,  // looking took so long: others ran meanwhile, who make way for one that wakes up
    SPIN_TRUST = 8,              // it looks from this score on ...
    SPIN_SCORE_MAX = 16,         // ... which goes up by one with a short wait, and down by two with a long one
    SPIN_REST = 20, // after a late look it sleeps for so many times as long: so late looks cost a twentieth
    SPIN_REST_US_MAX = 1000 * 1000, // of the time at most, and a few of a millisecond a second next to nothing
};

struct spin {
    int score;
    int64_t rest_us; // it is not to look for so long
};

#define SPIN_INIT ((struct spin){0})

bool spin_wanted(const struct spin *s);                   // before a wait
void spin_looked(struct spin *s, int64_t us, bool found); // so long, and found something or went to sleep then
void spin_slept(struct spin *s, int64_t us);              // at once, and until what had come was dealt with
