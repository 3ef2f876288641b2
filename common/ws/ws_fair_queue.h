// SPDX-License-Identifier: Apache-2.0
// Which session is read next: deficit round robin over owners, and round robin over the sessions of an owner. An owner
// with one session waits for one quantum of each other owner, however many sessions those have.
#pragma once

#include "common/base/list.h"
#include "common/base/map.h"

#include <stddef.h>

#define WS_QUANTUM ((size_t)64 << 10) // bytes of an owner of weight 1 that are read before the next owner's

struct ws_owner;

struct ws_fair_queue {
    struct list waiting; // owners that have ready sessions; the next one first
    struct map owners;   // by name
    size_t n_ready;      // sessions
    // private
    struct ws_owner *reading; // the owner of the last one; counted
};

void ws_fair_queue_init(struct ws_fair_queue *q);
void ws_fair_queue_done(struct ws_fair_queue *q); // all owners have gone
// Counted: ws_owner_unref() gives it back. The weight counts when the name is new.
struct ws_owner *ws_fair_queue_owner(struct ws_fair_queue *q, const char *name, unsigned weight);
void ws_owner_unref(struct ws_owner *o);

// `ready` belongs to the session. It is in its owner's list until it leaves or is next.
void ws_owner_ready(struct ws_owner *o, struct list *ready); // after the owner's other sessions; once
void ws_owner_leave(struct ws_owner *o, struct list *ready);
struct list *ws_fair_queue_next(struct ws_fair_queue *q); // takes the session out. NULL: none is ready
void ws_fair_queue_spend(struct ws_fair_queue *q,
                         size_t bytes); // call it after each session, even if the session has a new owner now
