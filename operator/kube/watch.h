// SPDX-License-Identifier: Apache-2.0
// The state machine of list and watch: how to mirror a collection. Pure. The reflector tells it what happened, and
// carries out the next step.
//
//   START -> list page(s) -> LISTED: the store is swapped -> WATCHING(resourceVersion)
//   a watch that ends normally, or after an idle time  -> watch again from the last resourceVersion seen
//   410 Gone, as a status or in an ERROR event         -> list again (after a backoff if it repeats)
//   401, 403, 429, 5xx, network                        -> the same step again after a backoff
#pragma once

#include "common/base/err.h"
#include "common/base/rand.h"

#include <stdbool.h>
#include <stdint.h>

// START: nothing is in progress. WAITING: the next step is a wait.
enum watch_state { WATCH_STATE_START, WATCH_STATE_LISTING, WATCH_STATE_WATCHING, WATCH_STATE_WAITING };

enum watch_action {
    WATCH_DO_LIST,  // first page: begin a new generation of the store's content
    WATCH_DO_PAGE,  // next page, with continue_token
    WATCH_DO_SWAP,  // the list is complete: remove all objects that were not in it. Then call watch_next() again
    WATCH_DO_WATCH, // from resource_version, with bookmarks, for timeout_s; give up after idle_ms without a byte
    WATCH_DO_WAIT,  // wait_ms, then call watch_next() again
};

struct watch {
    enum watch_state state;
    char resource_version[64]; // last seen
    char *continue_token;      // owned
    int failures;              // in a row, for the backoff
    int repeats;               // 410s and watches without any event in a row: the first has no backoff
    bool progress;             // the present watch has brought an event
    bool swap_due;
    bool relist;  // the next step is the first page of a list
    bool listing; // a list is in progress
    int64_t retry_after_ms;
    struct rand rand;
};

struct watch_step {
    enum watch_action action;
    const char *continue_token; // valid until the next call
    const char *resource_version;
    int32_t timeout_s; // 290 to 590, random
    int64_t idle_ms;   // timeout_s and a margin
    int64_t wait_ms;
};

void watch_init(struct watch *w, uint64_t seed);
void watch_done(struct watch *w);

struct watch_step watch_next(struct watch *w);
// Tell it what happened:
void watch_page_done(struct watch *w, const char *resource_version,
                     const char *continue_token);              // "" or NULL: last page
void watch_saw(struct watch *w, const char *resource_version); // an event or a bookmark arrived
void watch_ended(struct watch *w, const struct err *err);      // a list or a watch has ended; err->code 0: properly
