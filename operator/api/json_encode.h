// SPDX-License-Identifier: Apache-2.0
// Writes structs as JSON, by the field tables that read them (json_table.h).
#pragma once

#include "common/base/json_writer.h"
#include "operator/api/json_table.h"

// The object as a member `key` (NULL: none). Nothing is left out but what says so: NULL, an empty list and an integer's
// `missing` that is not 0 are null. Strings, lists of them, booleans, integers, times, names, lists and objects only.
void json_encode(const struct json_table *table, const char *key, const void *from, struct json_writer *w);
// The members alone, into an object that is open.
void json_encode_members(const struct json_table *table, const void *from, struct json_writer *w);
// {key: the object}, in the arena.
const char *json_patch(const struct json_table *table, const char *key, const void *from, struct arena *a);
// Written, they are the same: what was rounded or repaired on the way out does not look like a change for ever.
bool json_same(const struct json_table *table, const void *a, const void *b);
