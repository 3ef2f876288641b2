// SPDX-License-Identifier: Apache-2.0
// Records of subprotocol cadre.v1: a header of 16 bytes, which is enough for routing, then a body. docs/protocol.md is
// the specification. This header has its numbers; record_reader.h and record_writer.h have the streams.
//
//   0  u32 length of the body in this record    8  u32 rank: whom it is for, or from; 0xffffffff = the group
//   4  u32 call id                             12  u8 type  13  u8 flags  14  u8 dispatch  15  u8 execute
//
// All numbers are little endian.
#pragma once

#include "common/base/err.h"
#include "common/wire/mode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_HEADER_SIZE 16
#define RECORD_BODY_MAX ((size_t)1 << 20) // of one record; a longer body continues in the next one of its call
#define RECORD_GROUP UINT32_MAX
#define RECORD_SUBPROTOCOL "cadre.v1"
#define RECORD_SUBPROTOCOL_JSON "cadre.v1.json"

// X(name, number, sort). Sorts: S of the session (call id 0), C from the client, A an answer.
#define RECORD_TYPES(X) \
    X(HELLO, 1, S)      \
    X(WELCOME, 2, S)    \
    X(GOODBYE, 3, S)    \
    X(CALL, 4, C)       \
    X(ARGS, 5, C)       \
    X(CANCEL, 6, C)     \
    X(RESULT, 7, A)     \
    X(ERROR, 8, A)      \
    X(HOLD, 9, C)       \
    X(GO, 10, C)        \
    X(START, 16, S)     \
    X(STOP, 17, S)      \
    X(STARTED, 18, S)   \
    X(EXITED, 19, S)    \
    X(HEARTBEAT, 20, S) \
    X(OUTPUT, 21, S)    \
    X(PREPARE, 22, S)   \
    X(PREPARED, 23, S)  \
    X(RESTART, 24, S)   \
    X(STOPPED, 25, S)   \
    X(REFUSED, 26, S)   \
    X(FREE, 27, S)      \
    X(MEMORY, 28, S)    \
    X(RETURN, 29, S)    \
    X(KILL, 30, S)      \
    X(REPORT, 31, S)    \
    X(PLACE, 32, S)     \
    X(ARCHIVE, 33, S)   \
    X(PROGRESS, 34, S)

enum record_type {
#define X(name, number, sort) RECORD_##name = (number),
    RECORD_TYPES(X)
#undef X
};

enum record_flags {
    RECORD_MORE = 1,    // this body continues in the next record of the same call, rank and type
    RECORD_PARTS = 2,   // CALL, ARGS: arguments of a further rank follow; RESULT, ERROR: a further answer follows
    RECORD_QUIET = 4,   // CALL: the result of this rank is not part of the answer, a RESULT without a body is enough
    RECORD_ORDERED = 8, // CALL to a worker: not before the calls that began earlier are whole
    RECORD_REFS = 16,   // CALL to a worker: there are references in the arguments (ref.h)
    RECORD_SHARED = 32, // CALL, RESULT: the bytes of the body in this record lie in shared memory (share.h)
    RECORD_CODE = 64,   // CALL to a worker that asked for it: the client may run its own code here
};

struct record_header {
    uint32_t len; // of the body in this record
    uint32_t call;
    uint32_t rank;
    uint8_t type, flags, dispatch, execute;
};

void record_header_encode(char *out, const struct record_header *h); // RECORD_HEADER_SIZE bytes
// ERR_LIMIT for a length over RECORD_BODY_MAX, ERR_PROTO for everything that the specification does not allow.
int record_header_decode(const char *in, struct record_header *ret, struct err *err);
bool record_is_answer(unsigned type);        // RESULT or ERROR
const char *record_type_name(unsigned type); // "CALL"; "?" for none

// The body of a CALL is a u32 length, that many bytes of JSON (the head), and the arguments. They point into the body.
struct record_call {
    const char *head, *args;
    size_t head_len, args_len;
};

int record_call_decode(const char *body, size_t len, struct record_call *ret, struct err *err);
void record_call_prefix(char out[4], uint32_t head_len); // the bytes before the head
