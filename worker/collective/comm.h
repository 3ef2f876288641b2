// SPDX-License-Identifier: Apache-2.0
// A communicator behind the opaque cadre_comm of the ABI: a star that watches the members, a back end that moves the
// bytes, and the rules of cadre/collective.h. The worker host knows what a call is, and how members reach each other.
#pragma once

#include "common/base/err.h"
#include "sdk/c/include/cadre/collective.h"

#include <stdbool.h>

enum { COMM_LIMIT_MS = 60 * 1000, COMM_MEMBERS_MAX = 4096 };

struct comm_config {
    const char *backend;      // "gloo"
    const char *address;      // of this host, as others reach it
    const char *const *names; // of all members, for messages: "rank 3"; copied
    int index, n;
    int *links; // as star_config has them; the communicator closes them, also where it fails
    int64_t limit_ms;
    void *stream; // of the program, as in cadre_comm_options; may be NULL
    bool debug;   // what members call is compared before it begins
};

// ERR_INVALID: there is no such back end in this build or image, or it has no streams. Else ERR_TIMEOUT, ERR_GONE,
// ERR_UNAVAILABLE with who is missing, or what is wrong on which rank.
int comm_new(const struct comm_config *config, cadre_comm **ret, struct err *err);
