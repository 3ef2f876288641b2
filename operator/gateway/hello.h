// SPDX-License-Identifier: Apache-2.0
// Reads the members that every HELLO may have (docs/protocol.md, "Sessions").
#pragma once

#include "common/base/arena.h"
#include "common/base/json_writer.h"
#include "operator/proxy/proxy_group.h"

struct hello {
    const char *role;           // never NULL
    const char *token, *ticket; // NULL = not in the HELLO; the same for all that follow
    const char *ns, *group;
    const char *replica, *instance, *proof;
    int64_t rank, attempt; // -1 = not in the HELLO
    bool output;           // a client wants the lines that the ranks of its group print
};

// Strings are in the arena. ERR_INVALID; ERR_LIMIT: the JSON is nested too deep.
int hello_decode(const char *json, size_t len, struct arena *a, struct hello *ret, struct err *err);
// Writes the member "group" of a WELCOME, with the meshes of the object.
void hello_group(const struct group *g, uint32_t attempt, struct json_writer *w);
