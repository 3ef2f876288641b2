// SPDX-License-Identifier: Apache-2.0
// A client's request for a WorkerGroup or PlacementGroup ({"workerGroup": {...}, "lifetime": "Session" | "Detached"},
// or "placementGroup"), made into the object to create. The API server checks the spec. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "operator/api/object.h"
#include "operator/api/resource.h"

#include <stdbool.h>
#include <stdint.h>

#define ANNOTATION_CREATED_BY "cadre.dev/created-by"           // the user
#define ANNOTATION_MANIFEST_HASH "cadre.dev/manifest-hash"     // of what was asked for
#define ANNOTATION_SESSION_RENEWED "cadre.dev/session-renewed" // Unix ms; only of groups that go with their session

struct draft {
    enum kind kind; // KIND_WORKERGROUP or KIND_PLACEMENTGROUP
    const char *name;
    const char *hash; // of the arguments
    bool detached;
    const char *manifest; // JSON
};

// ERR_INVALID says what is wrong with the arguments, ERR_FORBIDDEN names the other namespace, ERR_LIMIT
// says that they are nested too deep. Strings are in the arena.
int draft_read(const char *args, const char *ns, const char *user, int64_t now_ms, struct arena *a, struct draft *ret,
               struct err *err);
// Which object {"group": NAME} or {"placementGroup": NAME} is about; `method` has these arguments. ERR_INVALID.
int draft_read_name(const char *args, const char *method, struct arena *a, enum kind *ret_kind, const char **ret_name,
                    struct err *err);
// ERR_INVALID if the draft belongs to a session, and there is none.
int draft_check_session(const struct draft *d, bool has_session, struct err *err);
// Returns the answer to group.create.
const char *draft_answer(const char *ns, const char *name, const char *uid, bool detached, struct arena *a);
// Which PlacementGroup group.bundles asks about. ERR_INVALID.
int draft_read_bundles(const char *args, struct arena *a, const char **ret_name, struct err *err);
// What group.restart is about: {"group": NAME}, *ret_worker is NULL; or {"workerGroup": {the manifest of the group of
// its name}}, whose spec.worker, JSON, the group is to have from now on, and *ret_manifest is all of it. ERR_INVALID.
int draft_read_restart(const char *args, struct arena *a, const char **ret_name, const char **ret_worker,
                       const char **ret_manifest, struct err *err);

struct bundle_places { // of a PlacementGroup, what group.bundles answers
    int32_t n;
    const char *const *nodes; // of each, NULL = not known; NULL = of none
    bool ready;
    const char *message; // why it is not, NULL = nothing to say
};
const char *bundle_places_write(const struct bundle_places *p, struct arena *a);

// What group.capacity answers: so many nodes, and what they have together. Amounts are whole ones.
const char *capacity_write(size_t nodes, const struct resources *all, struct arena *a);
