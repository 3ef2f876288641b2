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

// Never fails. If the text is not a Status (such as an HTML page of a proxy), its first 200 bytes become the message.
void api_status_decode(const char *json, size_t len, struct arena *a, struct api_status *ret);

// Maps an HTTP answer to an error code, and takes the message of the server: 401 UNAUTHORIZED, 403 FORBIDDEN, 404
// NOT_FOUND, 409 EXISTS (reason AlreadyExists) or CONFLICT, 410 GONE, 422/400 INVALID, 429 THROTTLED, 5xx UNAVAILABLE,
// 504 TIMEOUT.
int api_status_err(int http_status, const char *json, size_t len, struct err *err);
