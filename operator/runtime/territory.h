// SPDX-License-Identifier: Apache-2.0
// The namespaces that an installation for all namespaces leaves to other installations: those in which an operator runs
// that watches only this namespace. The label cadre.dev/watches of its pod says so. A pod speaks only for its own
// namespace, so nobody can exclude this installation from namespaces of others.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/store.h"

#define LABEL_WATCHES "cadre.dev/watches" // a namespace, or WATCHES_ALL
#define WATCHES_ALL "all.namespaces"

enum { TERRITORY_LINGER_MS = 60 * 1000 };

struct territory;

// A namespace is left to the operator in this pod; pod NULL: to nobody any more. From a change of the store, or the
// loop.
typedef void (*territory_fn)(void *ctx, const char *ns, const char *pod);

// Subscribes to the store, which lives longer. linger_ms: for so long after the last pod of the other installation has
// gone, which may be about to start again, the namespace is still left to it.
struct territory *territory_new(struct loop *loop, struct store *pods, int64_t linger_ms, territory_fn changed,
                                void *ctx);
void territory_free(struct territory *t); // when the store changes no more; accepts NULL
// t NULL: nothing is left to anybody.
void territory_each(const struct territory *t, territory_fn fn, void *ctx); // those that are left to others
bool territory_left(const struct territory *t, const char *ns);
