// SPDX-License-Identifier: Apache-2.0
// Reads JSON text into a tree of slices of that text. The reader is strict (json_grammar.h): it refuses U+0000 in any
// spelling unless said otherwise, and nothing may follow the document. Numbers stay text, so no digit is lost. Any
// value can be written exactly as it came. The text must outlive the tree and need not be NUL-terminated.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/json_grammar.h"

// A value takes 48 bytes in the tree, but may take only two bytes in the text. So the number of values needs a bound.
// etcd stores objects of 1.5 MiB, and a value takes at least two bytes there. So no stored object has more values than
// JSON_STORED_VALUES_MAX.
enum { JSON_VALUES_MAX = 100 * 1000, JSON_STORED_VALUES_MAX = 800 * 1000, JSON_LEN_MAX = 64 * 1024 * 1024 };

struct json {
    const char *text; // as it is written, a string with its quotes
    const char *key;  // name of a member of an object, without escapes, not NUL-terminated; NULL elsewhere
    struct json *child, *next;
    uint32_t len, key_len;
    enum json_type type;
    bool escaped; // the text of a string has escapes
};

// `prune` is NULL, or a NULL-terminated list of names. If a list or an object is a member with such a name, at any
// depth, its contents are checked but stay out of the tree. So large values that nobody reads cost no memory.
// ERR_INVALID names the first byte that is wrong. ERR_LIMIT names the limit that the text exceeds.
int json_parse(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
               struct err *err);

// Does the same for text from a sender that writes only valid JSON. It finds the end of pruned values, but does not
// check them.
int json_parse_trusted(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
                       struct err *err);

// Does the same for an object that the API server has stored, which may have more values: an object of one user that
// nobody can read must not count as missing.
int json_parse_stored(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
                      struct err *err);

// Does the same as json_parse() for values of users: strings may have U+0000, names may not. The tree is at most
// `depth` deep. Deeper values are checked but stay out of it, so long lists in them cost no memory.
int json_parse_values(const char *text, size_t len, int depth, struct arena *a, struct json **ret, struct err *err);

#define JSON_FOREACH(item, parent) \
    for (const struct json *item = (parent) ? (parent)->child : NULL; item; item = item->next)

size_t json_count(const struct json *v); // number of members or items
bool json_key_is(const struct json *v, const char *name);
// Returns the first member with that name, case-sensitive. Returns NULL if there is none, if it is null, or if `v` is
// not an object or is NULL.
const struct json *json_get(const struct json *v, const char *name);
bool json_str_is(const struct json *v, const char *s); // true for a string with that content; false for NULL
bool json_is_true(const struct json *v);               // false for NULL and for other types
bool json_is_false(const struct json *v);              // likewise
char *json_str(const struct json *v, struct arena *a); // content of a string; NULL for all other values
// Does the same, and returns the length, because the string may have U+0000.
char *json_text(const struct json *v, struct arena *a, size_t *ret_len);
// Returns true for an integer in range. 1.0 and 1e0 do not count as integers.
bool json_i64(const struct json *v, int64_t *ret);

// Returns the tree of a document, or NULL if the text is not valid JSON. For callers that need no reason.
const struct json *json_read(const char *text, size_t len, struct arena *a);

const char *json_type_name(enum json_type t); // "object"
