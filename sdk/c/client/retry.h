// SPDX-License-Identifier: Apache-2.0
// Whether and when a failed call is sent again: only if its client asked for it. docs/calls.md has the rules.
#pragma once

#include "common/base/err.h"
#include "common/base/rand.h"
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>

enum { RETRY_MIN_MS = 50, RETRY_MAX_MS = 5000 };

struct retry {
    uint32_t left, done; // tries after the first one
    bool idempotent;
    bool may_have_run; // a try that failed
    char on[];         // ",FAILED,NO_DEVICE,"
};

// *ret NULL: the request asks for no retries. Free it with free().
int retry_new(const cadre_client_request *request, struct retry **ret, struct err *err);
// The milliseconds to wait before the next try, which counts as used then. Negative: there is none.
int64_t retry_after(struct retry *r, const cadre_client_error *error, struct rand *rand);
