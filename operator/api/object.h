// SPDX-License-Identifier: Apache-2.0
// API objects in memory. They are immutable after decoding, reference-counted, and each has its own arena. They keep
// only the fields that Cadre reads. The object owns every string; a missing string is NULL unless said otherwise. A
// holder of a reference may read from any callback. References are counted on one thread.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
    KIND_POD,
    KIND_NODE,
    KIND_WORKERGROUP,
    KIND_PLACEMENTGROUP,
    KIND_SERVICE,
    KIND_ENDPOINTSLICE,
    KIND_LEASE,
    KIND_EVENT,
    KIND_SECRET,
    KIND_TOKEN_REVIEW,
    KIND_SUBJECT_ACCESS_REVIEW,
    KIND_SELF_SUBJECT_ACCESS_REVIEW,
    KIND_COUNT
};

// How a kind is addressed: "/api/v1/.../pods" or "/apis/<group>/<version>/.../<plural>".
struct kind_info {
    const char *kind;        // "Pod"
    const char *api_version; // "v1", "cadre.dev/v1alpha1"
    const char *plural;      // "pods"
    bool namespaced;
};
const struct kind_info *kind_info(enum kind kind);

struct label {
    const char *key, *value;
};

struct labels { // sorted by key
    struct label *items;
    size_t n;
};
const char *labels_get(const struct labels *l, const char *key); // NULL if missing

struct owner { // the controller owner reference; all NULL if there is none. Written with blockOwnerDeletion
    const char *api_version, *kind, *name, *uid;
};

// Returns true if the owner has that kind, in any version. It also compares the API group, because another group may
// have a kind of the same name.
bool owner_is(const struct owner *o, enum kind kind);

struct meta {
    const char *name, *ns; // ns "" for cluster-wide objects
    const char *uid, *resource_version;
    int64_t generation;
    int64_t created_ms;       // Unix time
    int64_t deleted_ms;       // deletionTimestamp, 0 = not being deleted
    int64_t deletion_grace_s; // deletionGracePeriodSeconds
    struct labels labels;
    struct labels annotations; // only the ones of cadre.dev/ (Cadre reads no other)
    struct owner owner;
};

struct object {
    int refs;
    enum kind kind;
    struct meta meta;
    struct arena arena; // owns this object itself
};

const struct object *object_ref(const struct object *o);
void object_unref(const struct object *o); // NULL is fine

// Compares resourceVersions; returns <0, 0 or >0. The longer one is newer; of two equally long ones, the one with the
// larger bytes (KEP-5504).
int resource_version_cmp(const char *a, const char *b);
