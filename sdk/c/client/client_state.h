// SPDX-License-Identifier: Apache-2.0
// What a client is: its waiting and sent calls, its connection and its loop.
#pragma once

#include "common/base/loop.h"
#include "sdk/c/client/client_fault.h"
#include "sdk/c/client/pending.h"
#include "sdk/c/client/uplinks.h"

struct cadre_client {
    struct settings settings;
    struct loop *loop;
    struct quota *quota; // of arguments that wait and results that come in
    struct uplinks uplinks;
    struct pendings calls;
    struct list waiting;              // not sent yet, in the order of their starts
    struct list canceled;             // before they were sent
    struct list resting;              // failed, to be sent again
    struct list buffers;              // batches in their making, and made (buffer.h)
    struct list finished, handed_out; // answers that are kept; the latter were told by cadre_client_next()
    uint32_t n_kept, n_promised;      // kept, and those that will be
    struct blob *taken;               // the result that was taken last
    struct deadlines deadlines;
    struct loop_timer *timer; // for the first of them ...
    int64_t timer_at;         // ... or an earlier point in time; 0 = not armed
    struct loop_timer *pump;  // sends what waits
    struct loop_timer *drop;  // answers what was canceled
    struct rand rand;
    uint64_t answered;
    int64_t turned_ms; // when the last turn ended
    bool turning, stale, closing, told_up;
    bool ended;                        // closed, but not freed yet
    struct client_threads *threads;    // NULL = one thread at a time
    struct callback_thread *callbacks; // then, where there are callbacks
    struct err why;                    // the last connection ended
    struct buf scratch, joined;
    struct buf result;        // of the last blocking call ...
    struct blob *returned;    // ... or, where it is long, this
    struct blob *answered_in; // during a callback: what its result lies in, NULL = nothing that can be kept
};
