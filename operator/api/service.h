// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/api/object.h"

struct json;

struct service {
    struct object obj;
    bool selects; // it has a selector, so Kubernetes publishes the endpoints
};

static inline const struct service *service_of(const struct object *o)
{
    return (const struct service *)o;
}

struct service_spec { // the headless Service of a gang
    const char *ns, *name;
    struct labels labels, selector; // no selector: the operator writes its EndpointSlices
    struct owner owner;
    int32_t port; // named "rendezvous"
};
// Returns the Service as JSON to create. Memory is from the arena.
const char *service_encode(const struct service_spec *s, struct arena *a);

// For object_decode().
int service_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
