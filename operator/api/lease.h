// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/api/object.h"

struct json;

#define ANNOTATION_WATCHES "cadre.dev/watches" // the namespaces that the holder acts on: one, or "*"

struct lease {
    struct object obj;
    const char *holder; // "" or NULL: nobody holds it
    int32_t duration_s;
    int32_t transitions;
    int64_t acquired_ms, renewed_ms; // Unix time; written with microseconds as the API wants
};

static inline const struct lease *lease_of(const struct object *o)
{
    return (const struct lease *)o;
}

// Returns the whole Lease as JSON. With a resource_version, the update fails if someone else has written meanwhile.
const char *lease_encode(const struct lease *l, struct arena *a);

// For object_decode().
int lease_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
