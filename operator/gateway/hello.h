// SPDX-License-Identifier: Apache-2.0
// What the gateway reads in every HELLO (docs/protocol.md, "Sessions").
#pragma once

#include "common/base/arena.h"
#include "common/base/json_writer.h"
#include "operator/proxy/proxy_group.h"

struct hello {
    const char *role;           // never NULL
    const char *token, *ticket; // NULL = not there, as all that follows
    const char *ns, *group;
    const char *replica, *instance, *proof;
    int64_t rank, attempt; // -1 = not there
    bool output;           // a client wants what the ranks of its group print
};

// Strings in the arena. ERR_INVALID; ERR_LIMIT: it is nested too deep.
int hello_decode(const char *json, size_t len, struct arena *a, struct hello *ret, struct err *err);
// The member "group" of a WELCOME, with the meshes of the object.
void hello_group(const struct group *g, uint32_t attempt, struct json_writer *w);
