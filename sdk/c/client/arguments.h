// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, as the client gave them: one JSON document or batch, or one for each rank. The latter become
// a list.
#pragma once

#include "common/base/err.h"
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>

struct arguments {
    const char *text; // NULL if each rank has its own
    const cadre_client_json *per_rank;
    size_t n, len; // number of ranks; bytes of all arguments
    bool bodies;   // some ranks' arguments are not JSON
};

// Borrows from the request. ERR_INVALID if these cannot be arguments, ERR_LIMIT over `max` bytes.
int arguments_of(const cadre_client_request *request, size_t max, struct arguments *ret, struct err *err);
void arguments_write(const struct arguments *a, char *out); // a->len bytes
