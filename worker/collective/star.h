// SPDX-License-Identifier: Apache-2.0
// How the members of a communicator find and watch each other: member 0 has a connection to every other member. First
// they exchange what their back ends need. Then a thread of each member watches its connections: they break as soon as
// a process ends, whatever its methods do. A process that stands still keeps them: members can ask each other whether
// they run. All members learn who was lost, and can ask who is missing in a collective.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAR_REASON_SIZE = 512, STAR_WHAT_SIZE = 160, STAR_MISSING_MS = 500 };

struct star;

struct star_config {
    int index, n;
    const char *const *names; // of the members, for messages: "rank 3"; borrowed until star_free()
    int *links; // of member 0: n descriptors, links[0] is not used; of another one: links[0] goes to member 0. The
                // star closes them. Connections have been let in already: nobody says here who he is
    int64_t limit_ms;   // of the exchange
    int64_t silence_ms; // while they watch: who does not answer for so long counts as lost; 0 = nobody is asked
};

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
// For a debug mode: says what the collective that begins here is, in words, and waits until all members have come with
// the same. ERR_GONE: they differ, or somebody was lost: star_broken() tells. ERR_TIMEOUT: somebody does not come.
int star_compare(struct star *s, const char *what, int64_t limit_ms);
// This member gives up: because of the limit, or for that reason (NULL = because of the limit). Waits up to a second
// for what all agree on, which goes to `ret`.
void star_give_up(struct star *s, const char *reason, char ret[STAR_REASON_SIZE]);
bool star_broken(struct star *s, char ret[STAR_REASON_SIZE]);
