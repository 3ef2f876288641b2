// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/api/object.h"
#include "operator/api/resource.h"

struct json;

struct taint {
    const char *key, *value, *effect;
};

struct node {
    struct object obj;
    struct resources allocatable;
    struct taint *taints;
    size_t n_taints;
    bool unschedulable;       // cordoned
    bool ready;               // condition Ready is True
    int64_t ready_changed_ms; // lastTransitionTime of Ready, 0 if it was never set
};

static inline const struct node *node_of(const struct object *o)
{
    return (const struct node *)o;
}

// For object_decode().
int node_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
