// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup as a controller asks for it ({"workerGroup": {...}, "lifetime": "Session" | "Detached"}), made into the
// object to create. What is in its spec the API server checks. Pure.
#ifndef CADRE_API_DRAFT_H
#define CADRE_API_DRAFT_H

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define ANNOTATION_CREATED_BY "cadre.dev/created-by"           // the user
#define ANNOTATION_MANIFEST_HASH "cadre.dev/manifest-hash"     // of what was asked for
#define ANNOTATION_SESSION_RENEWED "cadre.dev/session-renewed" // Unix ms; only of groups that go with their session

struct draft {
    const char *name;
    const char *hash; // of the arguments
    bool detached;
    const char *manifest; // JSON
};

// ERR_INVALID says what is wrong with the arguments, ERR_FORBIDDEN names the other namespace. Strings are in the arena.
int draft_read(const char *args, const char *ns, const char *user, int64_t now_ms, struct arena *a, struct draft *ret,
               struct err *err);

#endif
