// SPDX-License-Identifier: Apache-2.0
// The bundles of a gang that have to be placed, by shape: identical bundles are counted, not handled one by one.
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/placement/cluster.h"
#include "operator/placement/placement.h"

struct shape {
    const struct pod_constraints *constraints;
    const size_t *bundles; // their indexes in the gang, ascending
    int64_t n;
    int64_t placed; // how many of them are placed so far
    int64_t room;   // in the whole cluster, when the shapes were sorted
};

// All memory comes from the arena. Shapes come in the order in which the gang lists them.
size_t shapes_of(const struct gang *g, struct arena *a, struct shape **ret);

// Sorts the hardest shape first: shapes with GPUs come first, and among them the shape with the least room per bundle.
void shapes_sort(struct shape *shapes, size_t n);

// The indexes as a person writes them, "0-3,7"; shortened after the third range.
const char *shape_indexes(const struct shape *s, struct arena *a);
