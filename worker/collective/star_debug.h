// SPDX-License-Identifier: Apache-2.0
// The messages about calls that the members of a star send in debug mode. Member 0 compares the messages of all members
// about a collective, and passes on the messages of the two ends of a pair.
#pragma once

#include "worker/collective/star_config.h"

struct star_link;
struct star_frame;

// Describes the collective that begins here in words, and waits until all members have described the same.
// ERR_GONE: they differ, or a member was lost: star_broken() says which. ERR_TIMEOUT: a member has not called.
int star_compare(struct star *s, const char *what, int64_t limit_ms);
// The same for a pair: tells another member what this member is about to send to it. It does not wait.
void star_tell(struct star *s, int to, const char *what);
// Waits for the next message of that member about a send. "": it cannot come, because member 0 is gone. Errors as
// of star_compare().
int star_hear(struct star *s, int from, char what[STAR_WHAT_SIZE], int64_t limit_ms);

// The thread that watches calls these, without the mutex: a message has arrived, messages are to be sent, and a link
// has ended.
void star_debug_take(struct star *s, struct star_link *l, const struct star_frame *f, const char *body);
void star_debug_say(struct star *s);
void star_debug_lose(struct star *s);
void star_debug_free(struct star *s);
