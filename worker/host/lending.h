// SPDX-License-Identifier: Apache-2.0
// The question of one worker process to another for an object: a connection, a question, an answer. docs/protocol.md,
// "Between workers". All numbers are little endian.
//
//   question   u32 LENDING_MAGIC  u32 0                                   u64 id  i64 until  64 bytes key
//   or         u32 LENDING_GUEST_MAGIC  u32 place in the list of ranks    the same, of a meeting (meeting.h)
//   answer     u32 LENDING_MAGIC  u32 0, or the number of an error        u64 length         the object, or a message
#pragma once

#include <stdint.h>

#define LENDING_MAGIC UINT32_C(0x314f4443)       // "CDO1"
#define LENDING_GUEST_MAGIC UINT32_C(0x314d4443) // "CDM1"
enum { LENDING_KEY_LEN = 64, LENDING_QUESTION_LEN = 24 + LENDING_KEY_LEN, LENDING_ANSWER_LEN = 16 };

struct lending_question {
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
    uint32_t code; // 0, or -(enum err_code)
    uint64_t len;
};

void lending_question_write(const struct lending_question *q, char out[LENDING_QUESTION_LEN]);
int lending_question_read(const char in[LENDING_QUESTION_LEN], struct lending_question *ret); // ERR_PROTO
void lending_guest_write(const struct lending_guest *g, char out[LENDING_QUESTION_LEN]);
int lending_guest_read(const char in[LENDING_QUESTION_LEN], struct lending_guest *ret); // ERR_PROTO
void lending_answer_write(const struct lending_answer *a, char out[LENDING_ANSWER_LEN]);
int lending_answer_read(const char in[LENDING_ANSWER_LEN], struct lending_answer *ret); // ERR_PROTO
