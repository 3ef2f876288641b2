// SPDX-License-Identifier: Apache-2.0
// The bundles of a PlacementGroup, and which pod has which bundles. The annotations of a pod list the indexes of its
// bundles, and the shape that each bundle had when the pod was created. So the pods alone tell everything.
#pragma once

#include "operator/api/bundle.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"

#define ANNOTATION_BUNDLES "cadre.dev/bundles" // "0-3,6"
#define ANNOTATION_SHAPES "cadre.dev/shapes"   // "9f86d081884c7d65*4,...": in the order of the bundles

enum { BUNDLES_MAX = 10000 }; // of a PlacementGroup

struct bundle_shape {
    struct amounts resources;
    const struct labels *node_selector;
    uint64_t hash;
    const struct pod_constraints *needs; // of one bundle; NULL until they are needed
};

struct bundles {
    struct bundle_shape *shapes; // no two are alike
    size_t n_shapes;
    size_t *shape; // by bundle
    int32_t n;
    int32_t gpus; // of all
};

int64_t bundles_count(const struct placementgroup_spec *s); // as in the spec, even if the spec is not allowed
// Fails with ERR_INVALID or ERR_LIMIT; the message names the mistake in spec.bundles.
int bundles_expand(const struct placementgroup_spec *s, struct arena *a, struct bundles *ret, struct err *err);

// Checks that a container can request each shape. The API server checks that too, but only for bundles with a dry run.
// Fails with ERR_INVALID.
int bundles_check(const struct bundles *b, struct err *err);

static inline struct bundle_shape *bundle_shape(const struct bundles *b, int32_t i)
{
    return &b->shapes[b->shape[i]];
}

// A device of the bundle other than nvidia.com/gpu: an extended resource; NULL = none.
const struct amount *bundle_other_device(const struct bundle_shape *s);

// The requests of a pod with these bundles.
struct bundle_sum {
    struct amounts resources;
    struct labels node_selector;
};
void bundles_sum(const struct bundles *b, const int32_t *items, size_t n, struct arena *a, struct bundle_sum *ret);

// The texts of the two annotations.
const char *bundles_text(const int32_t *items, size_t n, struct arena *a);
const char *bundles_shapes_text(const struct bundles *b, const int32_t *items, size_t n, struct arena *a);

// The pod's bundles that still belong to the PlacementGroup, ascending, in the arena. Returns false if the annotations
// cannot be read. *ret_same: all of them still have the shape that they had.
bool bundles_of_pod(const struct bundles *b, const struct pod *p, struct arena *a, int32_t **ret, size_t *ret_n,
                    bool *ret_same);
