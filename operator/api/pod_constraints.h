// SPDX-License-Identifier: Apache-2.0
// The fields of a pod that restrict its nodes.
#pragma once

#include "operator/api/object.h"
#include "operator/api/resource.h"

struct json;

enum match_op { MATCH_IN, MATCH_NOT_IN, MATCH_EXISTS, MATCH_NOT_EXISTS, MATCH_GT, MATCH_LT };

struct match {
    const char *key; // a label, or "metadata.name" if `field`
    bool field;
    const char *op_name; // as the pod has it
    enum match_op op;
    const char **values;
    size_t n_values;
};

struct node_term { // a node must fit all matches of one term; it never fits an empty term
    struct match *matches;
    size_t n;
};

struct toleration {
    const char *key, *value, *effect; // NULL or "" = any
    bool exists;                      // operator Exists
};

struct pod_constraints {
    struct resources requests; // as in struct pod
    int32_t priority;
    bool preempts; // preemptionPolicy is not Never
    struct labels node_selector;
    struct node_term *terms; // required node affinity; n_terms 0 = any node
    size_t n_terms;
    struct toleration *tolerations;
    size_t n_tolerations;
};

// Reads the constraints of a pod from the answer to a create, or to its dry run. All memory is from the arena.
int pod_constraints_decode(const char *json, size_t len, struct arena *a, struct pod_constraints *ret, struct err *err);

// Returns the one node that all required terms of the node affinity name; NULL if there is none.
int pod_pin_decode(const struct json *spec, struct arena *scratch, const char **ret, struct err *err);
