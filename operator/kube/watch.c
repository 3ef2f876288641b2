// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WATCH_TIMEOUT_MIN_S = 290, // random, so that the watches of many clients do not end together
    WATCH_TIMEOUT_MAX_S = 590,
    WATCH_IDLE_MARGIN_MS = 10 * 1000, // the server should have ended the watch before
    WATCH_FIRST_WAIT_MIN_MS = 100,
    WATCH_FIRST_WAIT_MAX_MS = 800,
    WATCH_WAIT_MS = 1000,
    WATCH_WAIT_MAX_MS = 4 * 1000, // plus or minus a quarter, so an API server that is back is noticed within 5 s
    WATCH_RETRY_AFTER_MAX_MS = 5 * 60 * 1000,
    // If a server answers, but refuses to watch from our version this often in a row, it may not know the version, for
    // example after a restore from a backup. Then a list is needed.
    WATCH_REFUSALS = 5,
};

void watch_init(struct watch *w, uint64_t seed)
{
    *w = (struct watch){.state = WATCH_STATE_START, .relist = true};
    rand_seed(&w->rand, seed);
}

void watch_done(struct watch *w)
{
    free(TAKE_PTR(w->continue_token));
}

// The first retry is quick. The later waits double from 1 s to 30 s. Each wait is random, plus or minus a quarter.
static int64_t backoff_ms(struct watch *w, int failures)
{
    if (failures <= 1)
        return rand_range(&w->rand, WATCH_FIRST_WAIT_MIN_MS, WATCH_FIRST_WAIT_MAX_MS);
    int64_t wait = WATCH_WAIT_MS;
    for (int i = 2; i < failures && wait < WATCH_WAIT_MAX_MS; i++)
        wait *= 2;
    wait = MIN(wait, WATCH_WAIT_MAX_MS);
    return rand_range(&w->rand, wait * 3 / 4, wait * 5 / 4);
}

static struct watch_step step_wait(struct watch *w)
{
    // A 410 or an empty watch counts as a failure only if it repeats.
    int64_t wait = backoff_ms(w, MAX(w->failures, w->repeats - 1));
    return (struct watch_step){.action = WATCH_DO_WAIT, .wait_ms = MAX(wait, w->retry_after_ms)};
}

static struct watch_step step_watch(struct watch *w)
{
    int32_t timeout_s = (int32_t)rand_range(&w->rand, WATCH_TIMEOUT_MIN_S, WATCH_TIMEOUT_MAX_S);
    w->state = WATCH_STATE_WATCHING;
    w->progress = false;
    return (struct watch_step){
        .action = WATCH_DO_WATCH,
        .resource_version = w->resource_version,
        .timeout_s = timeout_s,
        .idle_ms = (int64_t)timeout_s * 1000 + WATCH_IDLE_MARGIN_MS,
    };
}

struct watch_step watch_next(struct watch *w)
{
    if (w->state == WATCH_STATE_WAITING) {
        struct watch_step step = step_wait(w);
        w->state = WATCH_STATE_START;
        w->retry_after_ms = 0;
        return step;
    }
    if (w->swap_due) {
        w->swap_due = false;
        return (struct watch_step){.action = WATCH_DO_SWAP, .resource_version = w->resource_version};
    }
    if (w->relist) {
        free(TAKE_PTR(w->continue_token));
        w->relist = false;
        w->listing = true;
        w->state = WATCH_STATE_LISTING;
        return (struct watch_step){.action = WATCH_DO_LIST};
    }
    if (w->listing) {
        w->state = WATCH_STATE_LISTING;
        return (struct watch_step){.action = w->continue_token ? WATCH_DO_PAGE : WATCH_DO_LIST,
                                   .continue_token = w->continue_token};
    }
    return step_watch(w);
}

static void set_version(struct watch *w, const char *version)
{
    if (!str_empty(version) && strlen(version) < sizeof w->resource_version)
        snprintf(w->resource_version, sizeof w->resource_version, "%s", version);
}

void watch_page_done(struct watch *w, const char *resource_version, const char *continue_token)
{
    w->failures = 0; // but not w->repeats: list, 410, list, 410 is not progress
    free(TAKE_PTR(w->continue_token));
    if (!str_empty(continue_token)) {
        w->continue_token = xstrdup(continue_token);
        return;
    }
    set_version(w, resource_version);
    w->listing = false;
    w->swap_due = true;
}

void watch_saw(struct watch *w, const char *resource_version)
{
    set_version(w, resource_version);
    w->progress = true;
    w->failures = 0;
    w->repeats = 0;
}

void watch_ended(struct watch *w, const struct err *err)
{
    bool watching = w->state == WATCH_STATE_WATCHING;
    if (!watching && err->code == 0)
        return; // the end of a page: watch_page_done() does the rest
    w->retry_after_ms = MIN(err->retry_after_ms, WATCH_RETRY_AFTER_MAX_MS);
    w->state = WATCH_STATE_START;
    if (err->code == ERR_GONE) {
        w->relist = true;
        w->repeats++;
    } else if (watching && (err->code == 0 || err->code == ERR_TIMEOUT) && !err->http_status) {
        w->repeats = w->progress ? 0 : w->repeats + 1;
    } else {
        w->failures++;
        bool refused = watching && err->http_status && err->code != ERR_THROTTLED;
        if (refused && w->failures % WATCH_REFUSALS == 0)
            w->relist = true;
        w->state = WATCH_STATE_WAITING;
        return;
    }
    if (w->repeats > 1 || w->retry_after_ms)
        w->state = WATCH_STATE_WAITING;
}
