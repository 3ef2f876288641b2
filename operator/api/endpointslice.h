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
    uint64_t hash; // of its content, by endpointslice_hash()
};

static inline const struct endpointslice *endpointslice_of(const struct object *o)
{
    return (const struct endpointslice *)o;
}

struct endpoint { // a pod of a group, whose host name others look up
    const char *ip, *hostname, *node, *pod, *uid;
};

struct endpointslice_spec {
    const char *ns, *name;
    struct labels labels; // include the two labels above
    struct owner owner;
    bool ipv6; // all addresses are
    const struct endpoint *endpoints;
    size_t n_endpoints;
    int32_t port; // named "rendezvous"
};

// endpointslice_encode() returns the JSON to create. endpointslice_patch() returns a merge patch for the version that
// the operator has seen. Memory is from the arena. Every endpoint counts as ready, because others look up its name
// before the pod is ready.
const char *endpointslice_encode(const struct endpointslice_spec *s, struct arena *a);
const char *endpointslice_patch(const struct endpointslice_spec *s, const char *resource_version, struct arena *a);
// Hashes the content. A slice that was read has the same hash as the endpoints that it was written from.
uint64_t endpointslice_hash(const struct endpoint *endpoints, size_t n, int32_t port);

// For object_decode().
int endpointslice_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
