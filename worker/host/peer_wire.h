// SPDX-License-Identifier: Apache-2.0
// The request of one worker process to another one, for an object or to join a rendezvous. It has its own connection,
// with one request and one answer. docs/protocol.md, "Between workers". All numbers are little endian.
//
//   object   u32 PEER_OBJECT_MAGIC   u32 place of the asker           u64 id   i64 until   64 bytes key
//   join     u32 PEER_JOIN_MAGIC     u32 place in the list of ranks   the same, for a rendezvous (rendezvous.h)
//   answer   u32 form                u32 0, or number of an error     u64 length   the object, or a message
//
// A process with a GPU sends its place (rank_device.h). The form of the answer then tells it how it gets values on the
// owner's device.
#pragma once

#include <stdint.h>

#define PEER_OBJECT_MAGIC UINT32_C(0x314f4443) // "CDO1"
#define PEER_JOIN_MAGIC UINT32_C(0x314d4443)   // "CDM1"
enum { PEER_KEY_LEN = 64, PEER_REQUEST_LEN = 24 + PEER_KEY_LEN, PEER_ANSWER_LEN = 16 };
enum { PEER_NO_GPU = 0, PEER_ELSEWHERE = -1 }; // instead of a place; the latter: it has a GPU, but cannot open handles

enum peer_form {
    PEER_BYTES,  // "CDO1": the object follows
    PEER_VALUES, // "CDV1": the object follows; its values belong on a device
    PEER_HANDLE, // "CDH1": a device_handle of its values follows, then its head. The peer copies the values while the
                 // connection is open
};

struct peer_request {
    uint32_t magic; // what is requested
    uint32_t place; // of the asker, or in the list of ranks
    uint64_t id;
    int64_t until;
    char key[PEER_KEY_LEN];
};

struct peer_answer {
    enum peer_form form;
    uint32_t code; // 0, or -(enum err_code)
    uint64_t len;  // of the object, or of the message
};

void peer_request_write(const struct peer_request *q, char out[PEER_REQUEST_LEN]);
void peer_request_read(const char in[PEER_REQUEST_LEN], struct peer_request *ret);
void peer_answer_write(const struct peer_answer *a, char out[PEER_ANSWER_LEN]);
int peer_answer_read(const char in[PEER_ANSWER_LEN], struct peer_answer *ret); // ERR_PROTO
