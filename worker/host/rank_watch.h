// SPDX-License-Identifier: Apache-2.0
// Threads that learn when another rank is lost, or stands still, whatever that rank did: some ranks of the group meet
// and keep their connections.
#pragma once

#include "worker/host/rendezvous.h"

#include <pthread.h>

enum { RANK_WATCH_SILENCE_S = 40 }; // unless a group says something else

struct star;

struct rank_watch {
    pthread_mutex_t mutex; // of what follows
    pthread_cond_t changed;
    bool busy, broken, ended;
    int64_t silence_ms; // who does not answer for so long counts as lost; 0 = only who has ended. Set before they meet
    atomic_bool canceled;
    struct star *agreeing; // while they meet
    struct star *star;     // NULL = they have not met
    char **names;
};

#define RANK_WATCH_INIT                                                         \
    {                                                                           \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

// One thread at a time calls these two, in this order, and again after a loss.

struct rank_watch_members {
    const int *ranks; // of the group, this one among them, in the same order on all of them
    int n;
};

// Waits until the other ranks of the list have called it: those that were not lost, and who takes the place of the lost
// one. The errors of rendezvous_meet() and star_agree(); ERR_CANCELED: rank_watch_end() was called. ERR_INVALID: this
// rank is not in the list, or no other one.
int rank_watch_meet(struct rank_watch *w, struct rendezvous *rv, const struct rank_watch_members *who, int64_t limit_ms,
                    struct err *err);
// ERR_GONE: one of them was lost, and the message says who. 0: rank_watch_end() was called.
int rank_watch_wait(struct rank_watch *w, struct err *err);

// From then on nobody uses the rendezvous, and the others do not count this rank as lost. On another thread.
void rank_watch_end(struct rank_watch *w);
