// SPDX-License-Identifier: Apache-2.0
// The decision about one PlacementGroup: this version answers it and does nothing else.
#ifndef CADRE_RECONCILE_PLACEMENTGROUP_H
#define CADRE_RECONCILE_PLACEMENTGROUP_H

#include "operator/api/placementgroup.h"

// The status patch to write, or NULL if the object has it already.
const char *placementgroup_reconcile(const struct placementgroup *plg, int64_t now_ms, struct arena *a);

#endif
