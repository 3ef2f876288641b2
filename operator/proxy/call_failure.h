// SPDX-License-Identifier: Apache-2.0
// Why a call was not answered with a result, and the body of its ERROR:
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

// KINDS: the codes of err.h, FAILED and NO_DEVICE, and all others.
enum { FAILURE_KINDS = 19 };
enum { FAILURE_CODE_MAX = 31, FAILURE_MESSAGE_MAX = 4095, FAILURE_RETRY_MS = 100, FAILURE_LATE_MAX = 8 };

struct failure_late { // ranks that had the call when its deadline passed, as many as fit
    uint32_t ranks[FAILURE_LATE_MAX], n;
};

struct failure {
    char code[FAILURE_CODE_MAX + 1];
    char message[FAILURE_MESSAGE_MAX + 1];
    int64_t rank;           // -1 = it is no one rank's
    const char *pod, *node; // borrowed; NULL = not known
    bool exited;            // then exit_code is the rank's process's
    int exit_code;
    int64_t retry_after_ms; // 0 = not said
    bool unran;             // the rank that says so has not begun to run the call
    const char *cause;      // an object that the rank sent for the client, borrowed; NULL = none
    size_t cause_len;
    struct failure_late late;
};

// THROTTLED: with FAILURE_RETRY_MS, in which other calls may have been answered.
void failure_set(struct failure *f, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void failure_from(struct failure *f, const struct err *err);
void failure_encode(const struct failure *f, struct buf *out);
// Of a call: with its traceparent ("" = none), and that certainly no rank has begun to run it (`unsent`).
void failure_encode_call(const struct failure *f, const char *trace, bool unsent, bool again, struct buf *out);
// What a worker sent, which must outlive the failure; something else becomes a failure that says so.
void failure_decode(struct failure *f, const char *json, size_t len);
// Failures are counted by it: bounded, whatever a worker sends.
unsigned failure_kind(const struct failure *f);
const char *failure_kind_name(unsigned kind);
