// SPDX-License-Identifier: Apache-2.0
// Which pod is which replica of a group, and which belong to none. Private to the census.
#ifndef CADRE_RECONCILE_SEATS_H
#define CADRE_RECONCILE_SEATS_H

#include "operator/reconcile/census.h"

// The bundles of a group that runs on some.
void seats_prepare(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a);
// Fills `current` and `stale`, and tells `mine`, `begun` and `changed`; the present attempt and incarnation are known.
void seats_take(struct census *c, const struct group_view *v, uint64_t spec_hash, struct arena *a);

#endif
