// SPDX-License-Identifier: Apache-2.0
// The head of a CALL: {"method": "add", "group": "llama", "timeoutMs": 5000, "attempt": 3, "whenNotReady": "Refuse"}.
// Only "method" is required; unknown members are ignored: a newer sender may write them. The proxy and the worker read
// it for every call. It is therefore scanned, and not parsed into a tree. `split` and `collect` are only located:
// proxy/dispatch_plan.h parses them.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CALL_HEAD_METHOD_MAX = 63, CALL_HEAD_ROLE_MAX = 63, CALL_HEAD_GROUP_MAX = 127 };
// Bytes of a head, which is read at once: enough for rules that name 100,000 ranks (JSON_VALUES_MAX). Bytes of `via`:
// enough for VIA_MAX places.
enum { CALL_HEAD_MAX = 2 << 20, CALL_HEAD_VIA_MAX = 16 << 10 };
#define CALL_HEAD_TIMEOUT_MAX_MS ((int64_t)7 * 24 * 3600 * 1000)

struct call_head {
    const char *method, *group; // in the head, not NUL-terminated; group NULL = the session's
    size_t method_len, group_len;
    const char *role; // likewise; NULL = none
    size_t role_len;
    int64_t timeout_ms; // 0 = none
    int64_t attempt;    // 0 = any
    bool refuse;        // fails instead of waiting for the group to be Ready
    bool pad;
    bool positional;             // the arguments are a list that is split: each part is a list of elements
    bool keep, pin;              // results stay on the workers, also after the end of the session
    const char *split, *collect; // JSON; NULL = it has none
    size_t split_len, collect_len;
    const char *via; // of calls that methods make, JSON (via.h); NULL = none
    size_t via_len;
    const char *trace; // `traceparent` if it is well-formed: TRACEPARENT_LEN bytes; NULL = none
};

int call_head_decode(const char *json, size_t len, struct call_head *ret, struct err *err); // ERR_INVALID

// Inline, because callers compare a method with a dozen names: most differ without a call.
static inline bool call_head_method_is(const struct call_head *h, const char *name)
{
    return h->method_len == strlen(name) && memcmp(h->method, name, h->method_len) == 0;
}
