// SPDX-License-Identifier: Apache-2.0
// Whose session is read next, of those that have something to be read: owners take turns, by deficit round robin, and
// so do the sessions of an owner. An owner with one session waits for one turn of each other owner, however many
// sessions those have.
#pragma once

#include "common/base/list.h"
#include "common/base/map.h"

#include <stdbool.h>
#include <stddef.h>

#define WS_TURN_BYTES ((size_t)64 << 10) // that an owner of weight 1 has read before the next owner's turn

struct ws_owner;

struct ws_turns {
    struct list waiting; // owners who have ready sessions; the next one first
    struct map owners;   // by name
    size_t n_ready;      // sessions
    // private
    struct ws_owner *reading; // whose turn the last one is; counted
};

void ws_turns_init(struct ws_turns *t);
void ws_turns_done(struct ws_turns *t); // all owners have gone
// Counted: ws_owner_unref() gives it back. The weight counts when the name is new.
struct ws_owner *ws_turns_owner(struct ws_turns *t, const char *name, unsigned weight);
void ws_owner_unref(struct ws_owner *o);

// `ready` is the session's own, in a list or not; and stays its owner's until it leaves or is next.
void ws_owner_ready(struct ws_owner *o, struct list *ready); // behind his others; once
void ws_owner_leave(struct ws_owner *o, struct list *ready);
struct list *ws_turns_next(struct ws_turns *t);        // which leaves. NULL: none is ready
void ws_turns_spend(struct ws_turns *t, size_t bytes); // after each one: it was read, even if it has a new owner now
