// SPDX-License-Identifier: Apache-2.0
// What the members of a star say of their calls in debug mode. The first member compares what all say of a collective,
// and passes on what the two ends of a pair say.
#pragma once

#include "worker/collective/star_config.h"

struct star_link;
struct star_frame;

// Says what the collective that begins here is, in words, and waits until all members have come with the same.
// ERR_GONE: they differ, or somebody was lost: star_broken() tells. ERR_TIMEOUT: somebody does not come.
int star_compare(struct star *s, const char *what, int64_t limit_ms);
// Likewise, for a pair: tells another member what this one is about to send to it, and does not wait for it.
void star_tell(struct star *s, int to, const char *what);
// Waits for the next that this member has told. "": it cannot be known, since the first member is gone. Errors as of
// star_compare().
int star_hear(struct star *s, int from, char what[STAR_WHAT_SIZE], int64_t limit_ms);

// Of the thread that watches, without the mutex: what has come, what is to be sent, and that a link has ended.
void star_debug_take(struct star *s, struct star_link *l, const struct star_frame *f, const char *body);
void star_debug_say(struct star *s);
void star_debug_lose(struct star *s);
void star_debug_free(struct star *s);
