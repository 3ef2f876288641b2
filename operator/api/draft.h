// SPDX-License-Identifier: Apache-2.0
// Turns a client's request for a WorkerGroup or PlacementGroup ({"workerGroup": {...}, "lifetime": "Session" |
// "Detached"}, or "placementGroup") into the object to create. The API server checks the spec. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "operator/api/object.h"
#include "operator/api/resource.h"

#include <stdbool.h>
#include <stdint.h>

#define ANNOTATION_CREATED_BY "cadre.dev/created-by"           // the user
#define ANNOTATION_MANIFEST_HASH "cadre.dev/manifest-hash"     // hash of the request
#define ANNOTATION_SESSION_RENEWED "cadre.dev/session-renewed" // Unix ms; only for groups that end with their session

struct draft {
    enum kind kind; // KIND_WORKERGROUP or KIND_PLACEMENTGROUP
    const char *name;
    const char *hash; // hash of the arguments
    bool detached;
    const char *manifest; // JSON
};

// An object that a session wants to renew, as this process knows it.
struct renewed {
    const char *uid; // NULL = there is none
    bool bound;      // it ends with a session
    bool deleting;
    bool late; // this process may learn late about a new object
};

// ERR_INVALID says what is wrong with the arguments. ERR_FORBIDDEN names the other namespace. ERR_LIMIT says that the
// arguments are nested too deep. Strings are in the arena.
int draft_read(const char *args, const char *ns, const char *user, int64_t now_ms, struct arena *a, struct draft *ret,
               struct err *err);
// Reads the kind and the name from {"group": NAME} or {"placementGroup": NAME}, the arguments of `method`. ERR_INVALID.
int draft_read_name(const char *args, const char *method, struct arena *a, enum kind *ret_kind, const char **ret_name,
                    struct err *err);
// Reads the arguments of group.renew: {"group": NAME, "uid": UID}, or {"placementGroup": NAME, "uid": UID}.
// ERR_INVALID.
int draft_read_renew(const char *args, struct arena *a, enum kind *ret_kind, const char **ret_name,
                     const char **ret_uid, struct err *err);
// Whether a session can renew this object, while the client means the one with the UID `wanted`. ERR_NOT_FOUND,
// ERR_INVALID.
int draft_check_renewal(const struct renewed *o, const char *wanted, bool has_session, struct err *err);
// ERR_INVALID if the draft belongs to a session, and there is none.
int draft_check_session(const struct draft *d, bool has_session, struct err *err);
// Returns the answer to group.create.
const char *draft_answer(const char *ns, const char *name, const char *uid, bool detached, struct arena *a);
// Reads the name of the PlacementGroup from the arguments of group.bundles. ERR_INVALID.
int draft_read_bundles(const char *args, struct arena *a, const char **ret_name, struct err *err);
// Reads the arguments of group.restart. They are {"group": NAME}; then *ret_worker and *ret_manifest are NULL. Or they
// are {"workerGroup": MANIFEST} with the manifest of that group; then *ret_worker is its new spec.worker (JSON), and
// *ret_manifest the whole manifest. ERR_INVALID.
int draft_read_restart(const char *args, struct arena *a, const char **ret_name, const char **ret_worker,
                       const char **ret_manifest, struct err *err);

struct bundle_places { // the answer of group.bundles about a PlacementGroup
    int32_t n;
    const char *const *nodes; // the node of each bundle, NULL = not known; NULL = no node is known
    bool ready;
    const char *message; // why it is not ready, NULL = no reason is known
};
const char *bundle_places_write(const struct bundle_places *p, struct arena *a);

// Writes the answer of group.capacity: the number of nodes, and the sum of their resources in whole units.
const char *capacity_write(size_t nodes, const struct resources *all, struct arena *a);
