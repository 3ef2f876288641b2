// SPDX-License-Identifier: Apache-2.0
// The namespaces that an installation for all namespaces leaves to other installations. An operator that watches only
// this namespace runs in each of them. The label cadre.dev/watches of its pod says so. A pod speaks only for its own
// namespace, so nobody can exclude this installation from other namespaces.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/store.h"

#define LABEL_WATCHES "cadre.dev/watches" // a namespace, or WATCHES_ALL
#define WATCHES_ALL "all.namespaces"

enum { EXCLUDED_NAMESPACES_LINGER_MS = 60 * 1000 };

struct excluded_namespaces;

// A namespace is now left to the operator in this pod; `pod` NULL: it is left to nobody any more. It is called inside a
// change of the store, or from the loop.
typedef void (*excluded_namespaces_fn)(void *ctx, const char *ns, const char *pod);

// Subscribes to the store, which must outlive it. linger_ms: the namespace is still left to the other installation for
// this time after its last pod has gone. The pod may be about to start again.
struct excluded_namespaces *excluded_namespaces_new(struct loop *loop, struct store *pods, int64_t linger_ms,
                                                    excluded_namespaces_fn changed, void *ctx);
void excluded_namespaces_free(struct excluded_namespaces *t); // the store must not change any more; accepts NULL
// Calls `fn` for each of them. `t` NULL: no namespace is excluded.
void excluded_namespaces_each(const struct excluded_namespaces *t, excluded_namespaces_fn fn, void *ctx);
bool excluded_namespaces_has(const struct excluded_namespaces *t, const char *ns);
