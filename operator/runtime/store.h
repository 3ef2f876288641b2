// SPDX-License-Identifier: Apache-2.0
// The mirror of one collection: immutable objects by namespace and name. It has indexes by controller owner, and for
// pods also by the node that they are bound or pinned to. Readers take references, or read without returning to the
// loop. Not thread-safe.
#pragma once

#include "operator/api/object.h"
#include "operator/api/object_peek.h"

struct store;

// Gets a change: `old` is NULL if the object is new, and `now` is NULL if it is gone. It is called inside the change,
// in order. It must not change the store. If an object was deleted and created again unseen (another UID under the same
// name), it is reported as gone, then as new.
typedef void (*store_fn)(void *ctx, const struct object *old, const struct object *now);

struct store *store_new(enum kind kind);
void store_free(struct store *s); // calls no subscriber
enum kind store_kind(const struct store *s);
void store_subscribe(struct store *s, store_fn fn, void *ctx); // at most 4

// Takes a change that a watch or a list has seen. It ignores an object that is not newer than the one in the store. The
// store takes its own reference.
void store_put(struct store *s, const struct object *o);
// Takes the deletion of `o` from a watch, with the resourceVersion of the deletion. It ignores the deletion if the
// store has a newer object, because we may have created it again. Unknown objects are fine.
void store_deleted(struct store *s, const struct object *o);
// Takes the deletion of an object that cannot be decoded any more. It ignores a new object with the same name.
void store_deleted_unread(struct store *s, const struct object_peek *g);
// Takes the answer to our own write. It is visible at once, before the watch delivers it. It is ignored if the watch is
// already past it, because it may have been deleted since.
void store_wrote(struct store *s, const struct object *o);
// If store_holds() returns true, the store has exactly this version, and store_put() need not be called. If
// store_is_past() returns true, the watch is past this version, and store_wrote() need not be called. The object then
// need not be decoded.
bool store_holds(const struct store *s, const struct object_peek *g);
bool store_is_past(const struct store *s, const char *resource_version);

// Between begin and swap, store_put() marks the objects of a list. Swap deletes the objects without a mark, unless they
// are newer than the list: we have written those meanwhile. Another begin starts over. If an object of the list cannot
// be decoded, store_keep() marks what is known of it, because it still exists. If nothing is known of it, it is
// remembered for store_is_unread() and store_has_unread().
void store_list_begin(struct store *s);
void store_keep(struct store *s, const struct object_peek *g);
bool store_is_unread(const struct store *s, const char *uid);
bool store_has_unread(const struct store *s, const char *ns, const char *name);
// Returns true if a list of this version, whose objects store_put() took, goes back in time. It is older than what the
// watch has seen. Or it has an older version of an object than the store has, although that one is not newer than the
// list.
bool store_list_goes_back(const struct store *s, const char *resource_version);
void store_list_swap(struct store *s, const char *resource_version);
void store_saw(struct store *s, const char *resource_version); // takes a bookmark
bool store_is_complete(const struct store *s);                 // the first list is complete

// Borrowed, NULL if it is missing.
const struct object *store_get(const struct store *s, const char *ns, const char *name);
size_t store_count(const struct store *s);
// Returns the objects of an owner, sorted by name in natural order. The array is in the arena, and the objects are
// borrowed. Only objects in the namespace of the owner count: somebody who may create pods elsewhere can write any UID
// into them.
size_t store_by_owner(const struct store *s, const struct meta *owner, struct arena *a,
                      const struct object *const **ret);
// Calls `fn` for the pods that are bound to a node, or pinned to it and not bound yet.
void store_each_on_node(const struct store *s, const char *node, void (*fn)(void *ctx, const struct object *o),
                        void *ctx);
// Calls `fn` for every object, the oldest first. It is for start-up and metrics, and too slow for each event. Nothing
// may be stored meanwhile.
void store_each(const struct store *s, void (*fn)(void *ctx, const struct object *o), void *ctx);
