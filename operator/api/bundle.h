// SPDX-License-Identifier: Apache-2.0
// The resources that bundles request, and the pods of bundles. In such a pod, the first container of the template gets
// the resources of the bundles instead of its own.
#pragma once

#include "operator/api/object.h"

struct amount {
    const char *name;
    int64_t milli; // saturating
};

struct amounts {
    struct amount *items; // sorted by name
    size_t n;
};

// Reads the resources of one bundle, as they are in spec.bundles. ERR_INVALID names the resource.
int amounts_decode(const char *json, struct arena *a, struct amounts *ret, struct err *err);
void amounts_add(struct amounts *to, const struct amounts *from, struct arena *a);
int64_t amounts_get(const struct amounts *from, const char *name); // 0 if missing

// Puts the template for pods with bundles into *ret_json. `json` is the template of the user, or NULL. If it has no
// container, the result gets one without an image; else the result is `json` itself. ERR_INVALID.
int bundle_template(const char *json, struct arena *a, const char **ret_json, struct err *err);

struct bundle_fill {
    const struct amounts *resources;    // requests and limits; a larger CPU limit of a template stays
    const struct labels *node_selector; // added to the selector of the template, and wins over it
    const struct amounts *replaces;     // the resources of the container to remove; NULL = all
    const char *image, *pull_policy;    // for a container that names no image
};

// Fills `f` into a template or a pod. Copies everything else as it is written. ERR_INVALID if a part that this function
// reads has the wrong shape.
int bundle_fill(const char *json, const struct bundle_fill *f, struct arena *a, const char **ret_json, struct err *err);
