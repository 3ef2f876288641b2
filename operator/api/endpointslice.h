// SPDX-License-Identifier: Apache-2.0
// EndpointSlices that Cadre writes itself, for Services without a selector. The label
// endpointslice.kubernetes.io/managed-by tells Kubernetes' own controllers to leave them alone.
#pragma once

#include "operator/api/object.h"

struct json;

#define LABEL_SLICE_SERVICE "kubernetes.io/service-name"
#define LABEL_SLICE_MANAGED_BY "endpointslice.kubernetes.io/managed-by"
#define SLICE_MANAGED_BY "cadre.dev"

struct endpointslice {
    struct object obj;
    size_t n_endpoints;
    uint64_t hash; // of what it says: endpointslice_hash()
};

static inline const struct endpointslice *endpointslice_of(const struct object *o)
{
    return (const struct endpointslice *)o;
}

struct endpoint { // one pod of ours, for the look-up of its host name
    const char *ip, *hostname, *node, *pod, *uid;
};

struct endpointslice_spec {
    const char *ns, *name;
    struct labels labels; // the two above are among them
    struct owner owner;
    bool ipv6; // all addresses are
    const struct endpoint *endpoints;
    size_t n_endpoints;
    int32_t port; // named "rendezvous"
};

// As JSON to create; and as a merge patch of the one that was seen in this version. Memory from the arena. Every
// endpoint is ready: its name is looked up before the pod is.
const char *endpointslice_encode(const struct endpointslice_spec *s, struct arena *a);
const char *endpointslice_patch(const struct endpointslice_spec *s, const char *resource_version, struct arena *a);
// The same for a slice that was read and for what it was written from, whatever else is in it.
uint64_t endpointslice_hash(const struct endpoint *endpoints, size_t n, int32_t port);

// For object_decode().
int endpointslice_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
