// SPDX-License-Identifier: Apache-2.0
// References: names of objects that worker processes keep. A reference says where the object is. The right to fetch it
// is separate (ref_key()). As text, without quotes:
//
//   cadre:1:GROUP UID:FORM:PART,PART...:CHECK      form: o the object of one rank, l a list of them, j joined
//   PART = RANK.ATTEMPT.ID.BYTES.KIND              id: 16 hex digits; kind: j JSON, b a batch, l a list of bodies
//
// and in JSON {"$ref": "cadre:1:..."}. On its way to a worker, the proxy adds what the worker needs to fetch the
// object: {"$ref": ..., "at": "10.0.0.7:4711", "key": "...", "until": 1764000000000, "owner": "rank 2 of ml/actor"}.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { REF_UID_MAX = 63, REF_PARTS_MAX = 16384, REF_KEY_SIZE = 65, REF_ID_SIZE = 17 };
#define REF_JOIN "{\"$join\":" // and a list of references to batches: they stand for one of all their rows
#define REF_TEXT_MAX ((size_t)1 << 20)
#define REF_ARGS_MAX ((size_t)1 << 20) // longer arguments are not searched for references

enum ref_form { REF_ONE = 'o', REF_LIST = 'l', REF_JOINED = 'j' };
enum ref_kind { REF_JSON = 'j', REF_BATCH = 'b', REF_BODIES = 'l' };

struct ref_part {
    uint32_t rank, attempt;
    uint64_t id, bytes;
    enum ref_kind kind;
};

struct ref {
    char uid[REF_UID_MAX + 1];
    enum ref_form form;
    uint32_t n; // at least 1; 1 for the object of one rank
    struct ref_part *parts;
};

// ERR_INVALID says why it is wrong. Parts are in the arena.
int ref_parse(const char *text, size_t len, struct arena *a, struct ref *ret, struct err *err);
void ref_write(const struct ref *r, struct buf *out);      // the text
void ref_write_json(const struct ref *r, struct buf *out); // {"$ref":"..."}
void ref_id_write(uint64_t id, char out[REF_ID_SIZE]);
bool ref_id_read(const char *text, size_t len, uint64_t *ret);

struct ref_found {    // in a JSON document
    const char *json; // the object, from its brace
    size_t len;
    const char *text; // the reference
    size_t text_len;
    // NULL = it does not say
    const char *at, *key, *owner; // between the quotes, not NUL-terminated, without escapes
    size_t at_len, key_len, owner_len;
    int64_t until; // ms since 1970; 0 = it does not say
};

// The next reference in valid JSON from *at on, at any depth. *at is then after it. False: there is none.
bool ref_next(const char *json, size_t len, size_t *at, struct ref_found *ret);
bool ref_mentioned(const char *json, size_t len);                                // a quick look: there may be one
bool ref_mentioned_in(const char *a, size_t a_len, const char *b, size_t b_len); // the same for two halves
bool ref_is(const char *json, size_t len, struct ref_found *ret); // the document is a reference and nothing else

// The key that opens an object of a process until a time (ms since 1970): derived from the secret that the
// processes of its attempt and the operator share, so that the owner need not ask anybody.
void ref_key(const char *secret, uint64_t id, int64_t until, char out[REF_KEY_SIZE]);
bool ref_key_good(const char *secret, uint64_t id, int64_t until, const char *key, size_t len);
