// SPDX-License-Identifier: Apache-2.0
// The recent Events of each object: a token bucket, as in the spam filter of client-go, and the series of equal Events.
// Memory is bounded: it drops the least recently used object first.
#pragma once

#include "common/base/list.h"
#include "common/base/map.h"

#include <stdbool.h>
#include <stdint.h>

struct series {
    uint64_t key; // hash of type, reason and note; 0 = free
    uint64_t id;  // it is in the name of the Event
    int32_t count, written;
    int64_t first_wall_ms, last_wall_ms, last_ms;
    bool busy; // a write is queued or in progress
};

struct event_object {
    struct list link; // in event_history.objects, least recently used first
    char *key;        // kind and UID
    int tokens;
    int64_t refilled_ms;
    struct series *series; // most objects have one or two
    int n_series;
};

struct event_history {
    struct map by_key; // key -> struct event_object
    struct list objects;
};

void event_history_init(struct event_history *h);
void event_history_done(struct event_history *h);
struct event_object *event_history_find(const struct event_history *h, const char *key); // NULL = it has none
// Adds the object if it is new. It becomes the most recently used one. now_ms is monotonic.
struct event_object *event_history_get(struct event_history *h, const char *key, int64_t now_ms);
void event_history_forget(struct event_history *h, struct event_object *o);

bool event_object_take_token(struct event_object *o, int64_t now_ms);     // false = it may write nothing at present
struct series *event_object_series(struct event_object *o, uint64_t key); // NULL = there is none
// Returns an entry for a new series: a free one, otherwise the one that was silent longest. Other series may move.
struct series *event_object_new_series(struct event_object *o);
