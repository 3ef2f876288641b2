// SPDX-License-Identifier: Apache-2.0
// Writes JSON. `key` is the name of a member, and NULL inside a list and for the document itself. Bytes that are not
// UTF-8 become U+FFFD.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    struct buf buf;
    bool comma; // the next member or item needs a comma before it
};

#define WRITER_INIT_MAX(max) ((struct json_writer){.buf = BUF_INIT(max)}) // a document of at most `max` bytes
#define WRITER_INIT WRITER_INIT_MAX(SIZE_MAX / 4)                         // use it if no peer decides about the size

void writer_done(struct json_writer *w);
// Returns a copy of the document in the arena; NULL if it is over the cap. Do not call writer_done() after it.
char *writer_finish(struct json_writer *w, struct arena *a);

void writer_object(struct json_writer *w, const char *key);
void writer_object_end(struct json_writer *w);
void writer_list(struct json_writer *w, const char *key);
void writer_list_end(struct json_writer *w);

void writer_key(struct json_writer *w, const char *key, size_t len); // for the next value; `key` needs no NUL
void writer_null(struct json_writer *w, const char *key);
void writer_str(struct json_writer *w, const char *key, const char *s);     // NULL is written as null
void writer_str_set(struct json_writer *w, const char *key, const char *s); // NULL or "": nothing at all
// Writes at most `max` bytes of s, counted without escapes and cut between two characters.
void writer_str_max(struct json_writer *w, const char *key, const char *s, size_t max);
void writer_i64(struct json_writer *w, const char *key, int64_t v);
void writer_bool(struct json_writer *w, const char *key, bool v);
void writer_time(struct json_writer *w, const char *key, int64_t ms);  // metav1.Time, 0: null
void writer_micro(struct json_writer *w, const char *key, int64_t ms); // metav1.MicroTime, 0: null
void writer_raw(struct json_writer *w, const char *key, const char *json, size_t len);
void writer_copy(struct json_writer *w, const struct json *v); // unchanged; a member of an object keeps its name
void writer_strs(struct json_writer *w, const char *key, const char *const *items, size_t n); // a list

// Writes JSON of a known form. `format` is its text, with ' instead of ". It may contain %s for a string (NULL: null),
// PRId64 for a number, and %-s for JSON that is copied unchanged.
void writer_print(struct json_writer *w, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Does the same as a separate document, in the arena.
char *json_print(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
