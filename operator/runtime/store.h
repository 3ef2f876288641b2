// SPDX-License-Identifier: Apache-2.0
// The mirror of one collection: immutable objects by namespace and name, with indexes by controller owner, and for
// pods by the node that they are bound or pinned to. Readers take references, or read without returning to the loop.
// Not thread-safe.
#pragma once

#include "operator/api/glance.h"
#include "operator/api/object.h"

struct store;

// A change: `old` is NULL where the object is new, `now` where it is gone. Called inside the change, in order; must not
// change the store. An object that was deleted and created again unseen (another UID under the same name) is told as
// gone, then as new.
typedef void (*store_fn)(void *ctx, const struct object *old, const struct object *now);

struct store *store_new(enum kind kind);
void store_free(struct store *s); // without events
enum kind store_kind(const struct store *s);
void store_subscribe(struct store *s, store_fn fn, void *ctx); // at most 4

// A change seen by a watch or a list. An object not newer than the one held is ignored. The store takes a reference of
// its own.
void store_put(struct store *s, const struct object *o);
// The deletion of `o`, as a watch brings it: with the resourceVersion of the deletion. Ignored if what is held is newer
// (created again by us meanwhile). Unknown objects are fine.
void store_deleted(struct store *s, const struct object *o);
// Removes whatever has that name. Unknown names are fine.
void store_delete(struct store *s, const char *ns, const char *name);
// Our own write, as the API server answered it: visible at once, before the watch brings it. Ignored if the watch is
// already past it (it may have been deleted since).
void store_wrote(struct store *s, const struct object *o);
// What neither of the two need be called for, nor the object decoded: that very version is held, or the watch is past
// it.
bool store_holds(const struct store *s, const struct glance *g);
bool store_is_past(const struct store *s, const char *resource_version);

// A list: between begin and swap, store_put() marks what is there; swap deletes what was not marked (and is not newer
// than the list: written by us meanwhile). begin again starts over.
void store_list_begin(struct store *s);
void store_list_swap(struct store *s, const char *resource_version);
void store_saw(struct store *s, const char *resource_version); // bookmark
bool store_synced(const struct store *s);                      // a first list is complete

const struct object *store_get(const struct store *s, const char *ns, const char *name); // borrowed, NULL if missing
size_t store_count(const struct store *s);
// The objects of an owner, sorted by name in natural order; array from the arena, objects borrowed. Only those in its
// namespace: who may create pods elsewhere can write any UID into them.
size_t store_by_owner(const struct store *s, const struct meta *owner, struct arena *a,
                      const struct object *const **ret);
// The pods that are bound to a node, or pinned to it and not bound yet, in that order.
void store_each_on_node(const struct store *s, const char *node, void (*fn)(void *ctx, const struct object *o),
                        void *ctx);
// Every object, the oldest first: for start-up and metrics, never per event. Nothing may be stored meanwhile.
void store_each(const struct store *s, void (*fn)(void *ctx, const struct object *o), void *ctx);
