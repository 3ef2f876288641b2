// SPDX-License-Identifier: Apache-2.0
// The connections between the members of a communicator. Member 0 has a connection to every other member. First, the
// members exchange what their back ends need. Then a thread of each member watches its connections. A connection breaks
// as soon as a process ends, whatever its methods do. It does not break if a process stands still, so members can ask
// each other whether they run. All members learn which member was lost, and can ask which one is missing in a
// collective.
#pragma once

#include "common/base/err.h"
#include "worker/collective/star_config.h"

#include <stdbool.h>

// Never fails, and sends nothing.
struct star *star_new(const struct star_config *config);
void star_free(struct star *s); // says goodbye first; accepts NULL
// All members call these in the same order. Each waits until all members have called it. ERR_TIMEOUT and ERR_GONE name
// the member that is missing.
int star_exchange(struct star *s, const char *blob, size_t len, char **ret_blobs, size_t *ret_lens, struct err *err);
int star_agree(struct star *s, const struct err *mine, struct err *err); // 0: no member has an error

// Call this on another thread while star_agree() waits, which then soon returns ERR_CANCELED. Members that have agreed
// meanwhile do not count this member as lost.
void star_cancel(struct star *s);

// Starts the thread that watches. It calls `on_broken` once.
void star_watch(struct star *s, void (*on_broken)(void *ctx), void *ctx);
void star_progress(struct star *s, uint32_t number); // this member begins that collective
// Tells all members the reason at once. They agree on one reason, which goes to `ret`: another one if that came first.
void star_break(struct star *s, const char *reason, char ret[STAR_REASON_SIZE]);
// This member gives up for that reason, NULL = because of the limit. It waits up to a second for the reason that all
// members agree on, which goes to `ret`.
void star_give_up(struct star *s, const char *reason, char ret[STAR_REASON_SIZE]);
bool star_broken(struct star *s, char ret[STAR_REASON_SIZE]);
