// SPDX-License-Identifier: Apache-2.0
// PlacementGroup: decoded as far as needed to answer it with Accepted=False, reason NotSupported.
#ifndef CADRE_API_PLACEMENTGROUP_H
#define CADRE_API_PLACEMENTGROUP_H

#include "operator/api/condition.h"
#include "operator/api/object.h"

struct placementgroup {
    struct object obj;
    int64_t observed_generation; // of the status
    struct condition *conditions;
    size_t n_conditions;
};

static inline const struct placementgroup *placementgroup_of(const struct object *o)
{
    return (const struct placementgroup *)o;
}

// A merge patch for the status subresource.
const char *placementgroup_status_patch(const struct condition *conditions, size_t n, int64_t observed_generation,
                                        struct arena *a);

#endif
