// SPDX-License-Identifier: Apache-2.0
// The bundles of a PlacementGroup, and which pod has which of them. The annotations of a pod list the indexes of its
// bundles, and the shape that each had when the pod was created. The pods alone therefore tell everything.
#pragma once

#include "operator/api/bundle.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"

#define ANNOTATION_BUNDLES "cadre.dev/bundles" // "0-3,6"
#define ANNOTATION_SHAPES "cadre.dev/shapes"   // "9f86d081884c7d65*4,...": in their order

enum { BUNDLES_MAX = 10000 }; // of a PlacementGroup

struct bundle_shape {
    struct amounts resources;
    const struct labels *node_selector;
    uint64_t hash;
    const struct pod_constraints *needs; // of one bundle; NULL until they are asked for
};

struct bundles {
    struct bundle_shape *shapes; // no two are alike
    size_t n_shapes;
    size_t *shape; // by bundle
    int32_t n;
    int32_t gpus; // of all
};

int64_t bundles_count(const struct placementgroup_spec *s); // as the spec says, whether that is allowed or not
// ERR_INVALID or ERR_LIMIT: names what is wrong in spec.bundles.
int bundles_expand(const struct placementgroup_spec *s, struct arena *a, struct bundles *ret, struct err *err);

// What no container can ask for: the API server would say so too, but it is asked about bundle 0 only. ERR_INVALID.
int bundles_check(const struct bundles *b, struct err *err);

static inline struct bundle_shape *bundle_shape(const struct bundles *b, int32_t i)
{
    return &b->shapes[b->shape[i]];
}

// A device that it has under another name than nvidia.com/gpu: an extended resource; NULL = none.
const struct amount *bundle_other_device(const struct bundle_shape *s);

// What a pod with these bundles asks for.
struct bundle_sum {
    struct amounts resources;
    struct labels node_selector;
};
void bundles_sum(const struct bundles *b, const int32_t *items, size_t n, struct arena *a, struct bundle_sum *ret);

// The text of both annotations.
const char *bundles_text(const int32_t *items, size_t n, struct arena *a);
const char *bundles_shapes_text(const struct bundles *b, const int32_t *items, size_t n, struct arena *a);

// Those of the pod's bundles that still are some of the group, ascending, in the arena. False: not to be read.
// *ret_same: they all have the shape that they had.
bool bundles_of_pod(const struct bundles *b, const struct pod *p, struct arena *a, int32_t **ret, size_t *ret_n,
                    bool *ret_same);
