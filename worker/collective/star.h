// SPDX-License-Identifier: Apache-2.0
// How the members of a communicator find and watch each other: member 0 has a connection to every other member. First
// they exchange what their back ends need. Then a thread of each member watches its connections: they break as soon as
// a process ends, whatever its methods do. A process that stands still keeps them: members can ask each other whether
// they run. All members learn who was lost, and can ask who is missing in a collective.
#pragma once

#include "common/base/err.h"
#include "worker/collective/star_config.h"

#include <stdbool.h>

// Never fails. Nothing is sent.
struct star *star_new(const struct star_config *config);
void star_free(struct star *s); // says goodbye first; accepts NULL
// All members call these in the same order. Each waits until all have; ERR_TIMEOUT and ERR_GONE name who is missing.
int star_exchange(struct star *s, const char *blob, size_t len, char **ret_blobs, size_t *ret_lens, struct err *err);
int star_agree(struct star *s, const struct err *mine, struct err *err); // 0: all have gone well; else who has not, why

// On another thread, while star_agree() waits: that returns ERR_CANCELED soon. Members that have agreed meanwhile do
// not count this one as lost.
void star_cancel(struct star *s);

// From now on a thread watches. `on_broken` comes once, from that thread.
void star_watch(struct star *s, void (*on_broken)(void *ctx), void *ctx);
void star_progress(struct star *s, uint32_t number); // the collective that begins here
// What all learn at once, and what they have agreed on: another reason, where that was first.
void star_break(struct star *s, const char *reason, char ret[STAR_REASON_SIZE]);
// This member gives up: because of the limit, or for that reason (NULL = because of the limit). Waits up to a second
// for what all agree on, which goes to `ret`.
void star_give_up(struct star *s, const char *reason, char ret[STAR_REASON_SIZE]);
bool star_broken(struct star *s, char ret[STAR_REASON_SIZE]);
