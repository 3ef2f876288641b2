// SPDX-License-Identifier: Apache-2.0
// The namespaces that an installation for all namespaces leaves to other installations. An operator that watches only
// this namespace runs in each of them. The label cadre.dev/watches of its pod says so. A pod speaks only for its own
// namespace, so nobody can exclude this installation from other namespaces.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/store.h"

#define LABEL_WATCHES "cadre.dev/watches" // a namespace, or WATCHES_ALL
#define WATCHES_ALL "all.namespaces"

enum { TERRITORY_LINGER_MS = 60 * 1000 };

struct territory;

// A namespace is now left to the operator in this pod; `pod` NULL: it is left to nobody any more. It is called inside a
// change of the store, or from the loop.
typedef void (*territory_fn)(void *ctx, const char *ns, const char *pod);

// Subscribes to the store, which must outlive it. linger_ms: the namespace is still left to the other installation for
// this time after its last pod has gone. The pod may be about to start again.
struct territory *territory_new(struct loop *loop, struct store *pods, int64_t linger_ms, territory_fn changed,
                                void *ctx);
void territory_free(struct territory *t); // the store must not change any more; accepts NULL
// `t` NULL: nothing is left to others.
void territory_each(const struct territory *t, territory_fn fn, void *ctx); // the namespaces that are left to others
bool territory_left(const struct territory *t, const char *ns);
