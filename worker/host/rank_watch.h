// SPDX-License-Identifier: Apache-2.0
// Tells threads when another rank is lost or stands still, whatever the cause is. Some ranks of the group meet and keep
// their connections for this.
#pragma once

#include "worker/host/rendezvous.h"

#include <pthread.h>

enum { RANK_WATCH_SILENCE_S = 40 }; // unless the group sets another time

struct star;

struct rank_watch {
    pthread_mutex_t mutex; // of the following members
    pthread_cond_t changed;
    bool busy, broken, ended;
    int64_t silence_ms; // a rank that does not answer for this time counts as lost; 0 = only when it has ended. Set
                        // before the ranks meet
    atomic_bool canceled;
    struct star *agreeing; // set while the ranks meet
    struct star *star;     // NULL = the ranks have not met
    struct arena memory;   // has the names of its ranks
};

#define RANK_WATCH_INIT                                                         \
    {                                                                           \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

// Call these two on one thread at a time, in this order, and again after a loss.

struct rank_watch_members {
    const int *ranks; // of the group, this one among them; all ranks use the same order
    int n;
};

// Waits until the other ranks of the list have called this function. After a loss, the process that takes the place of
// the lost one calls it, too. The errors of rendezvous_meet() and star_agree(). ERR_CANCELED: rank_watch_end() was
// called. ERR_INVALID: this rank is not in the list, or no other rank is.
int rank_watch_meet(struct rank_watch *w, struct rendezvous *rv, const struct rank_watch_members *who, int64_t limit_ms,
                    struct err *err);
// Returns ERR_GONE if a rank was lost; the message says which. Returns 0 if rank_watch_end() was called.
int rank_watch_wait(struct rank_watch *w, struct err *err);

// After this, no thread uses the rendezvous, and the other ranks do not count this rank as lost. Call it on another
// thread.
void rank_watch_end(struct rank_watch *w);
