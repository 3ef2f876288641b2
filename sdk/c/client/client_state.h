// SPDX-License-Identifier: Apache-2.0
// The state of a client: its waiting and sent calls, its connection and its loop.
#pragma once

#include "common/base/loop.h"
#include "sdk/c/client/client_fault.h"
#include "sdk/c/client/pending.h"
#include "sdk/c/client/uplinks.h"

struct cadre_client {
    struct settings settings;
    struct loop *loop;
    struct quota *quota; // for arguments that wait and results that come in
    struct uplinks uplinks;
    struct pendings calls;
    struct list urgent, waiting;      // not sent yet, in the order of their starts; the urgent ones go first
    struct list canceled;             // canceled before they were sent
    struct list resting;              // failed, to be sent again
    struct list buffers;              // batches that are being made, or are complete (buffer.h)
    struct list finished, handed_out; // kept answers (future.h)
    struct list notices;              // of watched calls that were answered (future.h)
    uint32_t n_kept, n_promised;      // kept answers, and calls whose answers will be kept
    uint32_t n_urgent;                // urgent calls without an answer
    struct blob *taken;               // the result that was taken last
    struct deadlines deadlines;
    struct loop_timer *timer; // for the first of them ...
    int64_t timer_at;         // ... or an earlier point in time; 0 = not armed
    struct loop_timer *pump;  // sends waiting calls
    struct loop_timer *drop;  // answers canceled calls
    struct rand rand;
    uint64_t answered;
    int64_t turned_ms; // when the last turn ended
    bool turning, stale, closing, told_up;
    bool ended;                        // closed, but not freed yet
    struct client_threads *threads;    // NULL = one thread at a time
    struct callback_thread *callbacks; // set if there are threads and callbacks
    struct err why;                    // the last connection ended
    struct buf scratch, joined;
    struct buf result;        // of the last blocking call ...
    struct blob *returned;    // ... or this, if it is long
    struct blob *answered_in; // during a callback: the blob with its result, NULL = it cannot be kept
};
