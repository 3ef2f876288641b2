// SPDX-License-Identifier: Apache-2.0
// Typed reading and writing of JSON objects by field tables. A table lists the members that Cadre reads or writes, and
// where each one is stored in a struct. Other members are ignored. null counts as missing. Errors name the path, with a
// bounded length: "spec.placement.strategy: expected one of Pack, Spread, got \"pack\"".
#pragma once

#include "common/base/json.h"

#include <limits.h>

enum json_kind {
    J_STRING,     // const char *
    J_BOOL,       // bool
    J_I32,        // int32_t
    J_I64,        // int64_t
    J_TIME,       // RFC 3339, int64_t in Unix milliseconds
    J_ENUM,       // int: index into `names`
    J_LABELS,     // map of strings, struct labels, sorted by key
    J_QUANTITIES, // map of quantities, struct resources
    J_TEXT,       // any object, const char *: its JSON text as it came
    J_STRINGS,    // list of strings, const char ** and its length
    J_I32S,       // list of integers, int32_t * and its length; min and max apply to each
    J_ITEMS,      // list of objects, const char *: its JSON text as it came; NULL if it is empty
    J_LIST,       // list of objects, struct * and its length, by `table`
    J_OBJECT,     // members of an object, in place, by `table` (may be NULL)
};

struct json_table;

struct json_field {
    const char *name;
    enum json_kind kind;
    size_t offset;                  // in the struct
    size_t offset_n;                // of the length (size_t) of a list
    size_t offset_is;               // J_OBJECT: of a bool that becomes true if the object is there, 0 = none
    const struct json_table *table; // J_LIST, J_OBJECT
    const char *const *names;       // J_ENUM, NULL-terminated
    bool required;                  // if the object around it is there
    bool open_enum;                 // J_ENUM: an unknown name counts as missing
    bool offered;                   // J_QUANTITIES: a node offers them, see resource.h
    int64_t min, max;               // of an integer; both 0: the range of its type. For writing, max is the number
                                    // of bytes of a string or of items of a list; 0 = all
    int64_t missing;                // value of a missing integer, boolean, enum or time
    const char *missing_str;        // value of a missing string, a literal
    const char *prefix;             // J_LABELS: only keys with this prefix
    // For writing
    const char *needs; // J_OBJECT: name of a member; if it is NULL or 0, the object is not written
    bool left_out;     // if it is NULL, 0 or empty labels; without left_out, NULL is written as null, and 0 as it is
    bool read_only;    // it is never written
    bool keeps_empty;  // J_LIST: an empty one is [], else null
    bool micro;        // J_TIME: as a MicroTime
    bool since;        // the time of a change of another member; json_same() ignores this one
};

struct json_table {
    size_t size; // of the struct that one object fills, and of an item of a list
    const struct json_field *fields;
    size_t n; // at most 64
};

// A table with these fields, each as the initializer of a struct json_field:
// static const struct json_table x_table = JSON_TABLE(struct x, {"name", J_STRING, offsetof(struct x, name)}, ...);
#define JSON_FIELDS(...) ((const struct json_field[]){__VA_ARGS__})
#define JSON_TABLE(type, ...)                                                                               \
    {                                                                                                       \
        sizeof(type), JSON_FIELDS(__VA_ARGS__), sizeof JSON_FIELDS(__VA_ARGS__) / sizeof(struct json_field) \
    }

// Fills the struct at `to` from an object (NULL: from an empty object). The members of the table must be zero before.
// Memory is from the arena. `root` is the path of `v` in error messages, "" for the document itself.
int json_decode(const struct json_table *table, const struct json *v, const char *root, void *to, struct arena *a,
                struct err *err);
// Returns the path of the first member that the table does not have, such as a misspelled one, in the arena; NULL if
// the table has all of them. Does not look into values that the table reads as text.
const char *json_unknown(const struct json_table *table, const struct json *v, const char *root, struct arena *a);
