// SPDX-License-Identifier: Apache-2.0
// The inside of a star, for star.c and star_debug.c, and how a star breaks.
#pragma once

#include "worker/collective/heartbeat.h"
#include "worker/collective/star_config.h"
#include "worker/collective/star_frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    STAR_SEND_MS = 1000,
    STAR_SENDS_MAX = 4096, // sends that members have announced and that were not received yet
};

struct star_link {
    int fd; // -1 = there is none, or it has ended
    int member;
    bool left;     // the member has said goodbye
    bool answered; // ASK
    int asked;     // PINGs since the last message of the member
    uint32_t begun;
    uint32_t compares; // the number of the last COMPARE that it has sent; `what` is its text
    char what[STAR_WHAT_SIZE];
};

struct star_send;

struct star {
    struct star_config config;
    struct star_link *links;
    size_t n_links;
    pthread_t thread;
    bool watches;
    struct heartbeat heartbeat;
    atomic_bool canceled;
    int wake; // an eventfd
    void (*on_broken)(void *ctx);
    void *ctx;
    pthread_mutex_t mutex; // protects the members below
    pthread_cond_t changed;
    uint32_t number;
    bool broken, stopping;
    bool late;     // a task for the thread: only the thread sends while it watches
    bool gives_up; // likewise; the reason is in `own`
    char own[STAR_REASON_SIZE];
    int64_t asked_ms; // when it asked the others which collective they have begun; 0 = it has not asked
    uint32_t asked_number;
    char reason[STAR_REASON_SIZE];
    uint32_t compares, compared; // the last collective to compare, and the last that is the same on all members
    bool says;                   // the thread has to send `what`
    char what[STAR_WHAT_SIZE];   // the text of a COMPARE or of a PAIR
    bool tells;                  // the thread has to send `what` to the member `tells_to`
    int tells_to;
    struct star_send *sends, **sends_end; // sends that others have announced, oldest first; sends_end NULL = none yet
    size_t n_sends;
    bool deaf; // it hears no more: member 0, which passes messages on, is gone, or too many messages were not received
};

int64_t star_now_ms(void);
void star_send_all(struct star *s, enum star_frame_kind kind, const char *text); // on every link that is open
void star_break_all(struct star *s, const char *reason); // the thread calls it, without the mutex
