// SPDX-License-Identifier: Apache-2.0
// Names, labels and text of the pods of a PlacementGroup, and of their Service. They are deterministic, so nothing can
// be created twice.
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/reconcile/bundles.h"
#include "operator/reconcile/gang_manifest.h"

const char *bundlepod_gang(const struct placementgroup *plg, struct arena *a); // <name>-plg: Service, label, subdomain
const char *bundlepod_name(const struct placementgroup *plg, int32_t index, int32_t incarnation, struct arena *a);
const char *bundlepod_service(const struct placementgroup *plg, struct arena *a); // as JSON

struct bundlepod {
    struct gang_pod pod;
    const int32_t *items; // its bundles, ascending
    size_t n;
};
int bundlepod_render(const struct placementgroup *plg, const struct bundles *b, const struct bundlepod *p,
                     struct arena *a, const char **ret_json, struct err *err);

// The requests of a pod with these bundles. tried_pod is the API server's answer to the dry run of a pod with bundle 0
// alone.
int bundlepod_needs(const struct bundles *b, const char *tried_pod, const int32_t *items, size_t n, struct arena *a,
                    struct pod_constraints *ret, struct err *err);
