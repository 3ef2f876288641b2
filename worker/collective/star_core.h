// SPDX-License-Identifier: Apache-2.0
// What a star is inside, for star.c and star_debug.c, and how it breaks.
#pragma once

#include "worker/collective/pulse.h"
#include "worker/collective/star_config.h"
#include "worker/collective/star_frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    STAR_SEND_MS = 1000,
    STAR_TOLD_MAX = 4096, // sends that were told and not received yet
};

struct star_link {
    int fd; // -1 = none, or over
    int member;
    bool left;     // it has said goodbye
    bool answered; // to ASK
    int asked;     // PINGs since something came
    uint32_t begun;
    uint32_t compares; // the last that it has sent to be compared, and what
    char what[STAR_WHAT_SIZE];
};

struct star_told;

struct star {
    struct star_config config;
    struct star_link *links;
    size_t n_links;
    pthread_t thread;
    bool watches;
    struct pulse pulse;
    atomic_bool canceled;
    int wake; // an eventfd
    void (*on_broken)(void *ctx);
    void *ctx;
    pthread_mutex_t mutex; // of what follows
    pthread_cond_t changed;
    uint32_t number;
    bool broken, stopping;
    bool late;     // to be said, or to be seen to, by the thread: nobody else sends while it watches
    bool gives_up; // likewise, for the reason that is in `own`
    char own[STAR_REASON_SIZE];
    int64_t asked_ms; // when it asked who has begun what; 0 = it has not
    uint32_t asked_number;
    char reason[STAR_REASON_SIZE];
    uint32_t compares, compared; // the last that was to be compared, and that is the same everywhere
    bool says;                   // to be sent by the thread
    char what[STAR_WHAT_SIZE];   // that, or what it tells
    bool tells;                  // likewise, to the member `tells_to`
    int tells_to;
    struct star_told *told, **told_end; // by others, in the order in which it came; told_end NULL = nothing yet
    size_t n_told;
    bool deaf; // nothing more is heard: the first member is gone, which would pass it on, or too much was not asked for
};

int64_t star_now_ms(void);
void star_send_all(struct star *s, enum star_frame_kind kind, const char *text); // to every link that there is
void star_break_all(struct star *s, const char *reason);                         // from the thread, without the mutex
