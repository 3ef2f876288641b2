// SPDX-License-Identifier: Apache-2.0
// The reason why a call has no result, and the body of its ERROR:
//
//   {"code": "UNAVAILABLE", "message": "...", "rank": 2, "pod": "llama-2-1", "node": "n1", "exitCode": 137}
//   {"code": "THROTTLED", "message": "...", "retryAfterMs": 100, "ran": false}
//   {"code": "ValueError", "message": "...", "rank": 1, "cause": {...}}
//   {"code": "TIMEOUT", "message": "...", "late": [0, 2]}
//
// Codes are the names of `enum err_code` or what a worker sent. All but code and message may be missing.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The codes of err.h, FAILED, NO_DEVICE, and one kind for all others.
enum { CALL_FAILURE_KINDS = 19 };
enum {
    CALL_FAILURE_CODE_MAX = 31,
    CALL_FAILURE_MESSAGE_MAX = 4095,
    CALL_FAILURE_RETRY_MS = 100,
    CALL_FAILURE_LATE_MAX = 8
};

struct call_failure_late { // ranks that had the call when its deadline passed, as many as fit
    uint32_t ranks[CALL_FAILURE_LATE_MAX], n;
};

struct call_failure {
    char code[CALL_FAILURE_CODE_MAX + 1];
    char message[CALL_FAILURE_MESSAGE_MAX + 1];
    int64_t rank;           // the rank that failed; -1 = none in particular
    const char *pod, *node; // borrowed; NULL = not known
    bool exited;            // the rank's process has exited, with exit_code
    int exit_code;
    int64_t retry_after_ms; // 0 = not said
    bool unran;             // the rank has not begun to run the call
    const char *cause;      // JSON object that the rank sent for the client, borrowed; NULL = none
    size_t cause_len;
    struct call_failure_late late;
};

// THROTTLED also sets retry_after_ms to CALL_FAILURE_RETRY_MS: by then, other calls may have been answered.
void call_failure_set(struct call_failure *f, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void call_failure_from(struct call_failure *f, const struct err *err);
// Writes the body of an ERROR. `trace`: the call's traceparent, "" = none. `unsent`: certainly no rank has begun to run
// the call. `again`: the method declared that it may run again.
void call_failure_encode(const struct call_failure *f, const char *trace, bool unsent, bool again, struct buf *out);
// Reads what a worker sent. The text must outlive the failure. If it is not an error, the failure says so.
void call_failure_decode(struct call_failure *f, const char *json, size_t len);
// The number under which failures are counted. There are CALL_FAILURE_KINDS of them, whatever a worker sends.
unsigned call_failure_kind(const struct call_failure *f);
const char *call_failure_kind_name(unsigned kind);
