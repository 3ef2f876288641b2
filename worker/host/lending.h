// SPDX-License-Identifier: Apache-2.0
// The question of one worker process to another for an object: a connection, a question, an answer. docs/protocol.md,
// "Between workers". All numbers are little endian.
//
//   question   u32 LENDING_MAGIC  u32 place of who asks                   u64 id  i64 until  64 bytes key
//   or         u32 LENDING_GUEST_MAGIC  u32 place in the list of ranks    the same, of a rendezvous (rendezvous.h)
//   answer     u32 form           u32 0, or the number of an error        u64 length         the object, or a message
//
// Who has a GPU says so by its place (rank_device.h). To them, the form of the answer says more about an object with
// values on the owner's device.
#pragma once

#include <stdint.h>

#define LENDING_MAGIC UINT32_C(0x314f4443)       // "CDO1"
#define LENDING_GUEST_MAGIC UINT32_C(0x314d4443) // "CDM1"
enum { LENDING_KEY_LEN = 64, LENDING_QUESTION_LEN = 24 + LENDING_KEY_LEN, LENDING_ANSWER_LEN = 16 };
enum { LENDING_NO_GPU = 0, LENDING_ELSEWHERE = -1 }; // instead of a place; the latter: it can open no handles

enum lending_form {
    LENDING_BYTES,  // "CDO1": the object follows
    LENDING_VALUES, // "CDV1": likewise; its values belong onto a device
    LENDING_HANDLE, // "CDH1": a device_handle of its values follows, then its head: they are copied while the
                    // connection is open
};

struct lending_question {
    uint32_t place;
    uint64_t id;
    int64_t until;
    char key[LENDING_KEY_LEN];
};

struct lending_guest {
    uint32_t index;
    uint64_t id;
    int64_t until;
    char key[LENDING_KEY_LEN];
};

struct lending_answer {
    enum lending_form form;
    uint32_t code; // 0, or -(enum err_code)
    uint64_t len;  // of the object, or of the message
};

void lending_question_write(const struct lending_question *q, char out[LENDING_QUESTION_LEN]);
int lending_question_read(const char in[LENDING_QUESTION_LEN], struct lending_question *ret); // ERR_PROTO
void lending_guest_write(const struct lending_guest *g, char out[LENDING_QUESTION_LEN]);
int lending_guest_read(const char in[LENDING_QUESTION_LEN], struct lending_guest *ret); // ERR_PROTO
void lending_answer_write(const struct lending_answer *a, char out[LENDING_ANSWER_LEN]);
int lending_answer_read(const char in[LENDING_ANSWER_LEN], struct lending_answer *ret); // ERR_PROTO
