// SPDX-License-Identifier: Apache-2.0
// PlacementGroup, as in crds/. The API server has already set the defaults of the schema. The decoder sets all other
// defaults; the fields say which.
#pragma once

#include "operator/api/condition.h"
#include "operator/api/object.h"
#include "operator/api/workergroup.h"

struct json;
struct json_table;

struct bundle_spec { // an entry of spec.bundles
    int32_t count;   // default 1
    const char *resources_json;
    struct labels node_selector;
};

struct placementgroup_spec {
    struct gang_spec gang;
    struct bundle_spec *bundles;
    size_t n_bundles;          // entries
    const char *template_json; // spec.template verbatim, NULL if missing
};

struct placementgroup_status {
    int64_t observed_generation;
    int32_t bundles, bound_bundles;
    int32_t gpus;  // number of GPUs of all bundles
    int32_t nodes; // number of nodes with a bundle
    int32_t incarnation;
    struct node_ranges *placements; // only the first 1,000 nodes are written
    size_t n_placements;
    struct condition *conditions;
    size_t n_conditions;
};

struct placementgroup {
    struct object obj;
    struct placementgroup_spec spec;
    struct placementgroup_status status;
};

static inline const struct placementgroup *placementgroup_of(const struct object *o)
{
    return (const struct placementgroup *)o;
}

// These functions work like workergroup_status_patch() and workergroup_status_equal().
const char *placementgroup_status_patch(const struct placementgroup_status *s, struct arena *a);
bool placementgroup_status_equal(const struct placementgroup_status *a, const struct placementgroup_status *b);

// For object_decode().
int placementgroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
extern const struct json_table placementgroup_table; // for the test that compares it with crds/
