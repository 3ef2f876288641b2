// SPDX-License-Identifier: Apache-2.0
// What bundles request, and the pods of bundles: a template whose first container gets the resources of the bundles
// instead of its own.
#pragma once

#include "operator/api/object.h"

struct amount {
    const char *name; // of the resource
    int64_t milli;    // saturating
};

struct amounts {
    struct amount *items; // sorted by name
    size_t n;
};

// The resources of one bundle, as spec.bundles has them. ERR_INVALID names the resource.
int amounts_decode(const char *json, struct arena *a, struct amounts *ret, struct err *err);
void amounts_add(struct amounts *to, const struct amounts *from, struct arena *a);
int64_t amounts_get(const struct amounts *from, const char *name); // 0 if missing

// The template of pods that have bundles: with a container of ours, without an image, if it names none. NULL: none is
// given. Else it is `json` itself. ERR_INVALID.
int bundle_template(const char *json, struct arena *a, const char **ret_json, struct err *err);

struct bundle_fill {
    const struct amounts *resources;    // requests and limits; a larger CPU limit of a template stays
    const struct labels *node_selector; // beside the template's, ours win
    const struct amounts *replaces;     // of the container's own resources only these go; NULL = all
    const char *image, *pull_policy;    // where the container names no image
};

// The template, or a pod, with that in it: anything else is copied as it is written. ERR_INVALID where the part that is
// looked at is of the wrong shape.
int bundle_fill(const char *json, const struct bundle_fill *f, struct arena *a, const char **ret_json, struct err *err);
