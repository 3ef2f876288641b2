// SPDX-License-Identifier: Apache-2.0
// Writes structs as JSON, by the field tables that read them (json_table.h).
#pragma once

#include "common/base/json_writer.h"
#include "operator/api/json_table.h"
#include "operator/api/object.h"

// Writes the object as a member `key` (NULL: without a name). It leaves out only fields with `left_out` or `read_only`.
// NULL, an empty list, and an integer equal to a `missing` that is not 0 become null. It can write strings, lists of
// strings, booleans, integers, times, enums, labels, lists and objects.
void json_encode(const struct json_table *table, const char *key, const void *from, struct json_writer *w);
// Writes only the members, into an object that is open.
void json_encode_members(const struct json_table *table, const void *from, struct json_writer *w);
void labels_write(struct json_writer *w, const char *key, const struct labels *l);
// Returns {key: the object}, in the arena.
const char *json_patch(const struct json_table *table, const char *key, const void *from, struct arena *a);
// Returns true if both would be written as the same JSON. A value that is rounded or repaired when it is written does
// not count as a change.
bool json_same(const struct json_table *table, const void *a, const void *b);
