// SPDX-License-Identifier: Apache-2.0
// metav1.Status: the API server's answer when something went wrong.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

struct api_status {
    int code;
    const char *reason; // "AlreadyExists", "Conflict", "Expired", ...; NULL if missing
    const char *message;
    int retry_after_s; // details.retryAfterSeconds
};

// Never fails: what is not a Status (an HTML page of some proxy) becomes its first 200 bytes as message.
void api_status_decode(const char *json, size_t len, struct arena *a, struct api_status *ret);

// Maps an HTTP answer onto our codes and writes the server's message: 401 UNAUTHORIZED, 403 FORBIDDEN, 404 NOT_FOUND,
// 409 EXISTS (reason AlreadyExists) or CONFLICT, 410 GONE, 422/400 INVALID, 429 THROTTLED, 5xx UNAVAILABLE, 504
// TIMEOUT.
int api_status_err(int http_status, const char *json, size_t len, struct err *err);
