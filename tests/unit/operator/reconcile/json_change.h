// SPDX-License-Identifier: Apache-2.0
// What one JSON document has that another has not, a line a change, so that the one follows from the other and the
// lines:
//
//     readyReplicas: 0
//     conditions.Ready.reason: "Starting"
//     placements: gone                      (it has no such member or item any more)
//
// Items of lists are known by their "type" or else "name" where all have one of their own; other lists are one value,
// as is a list whose items have changed their order. Values are compared and written as their text is. What is new and
// longer than a line is written on several.
#pragma once

#include "common/base/buf.h"
#include "common/base/json.h"

enum json_change_kind {
    JSON_CHANGE_WHOLE,
    JSON_CHANGE_PATCH, // `after` is a merge patch: null for what there is not, or as it is, changes nothing; what it
                       // does not speak of although `before` has it is "not said"
};

// `before` may be NULL: all of it is new. `root` is in front of the paths, "" for none.
void json_change_print(struct buf *out, const char *root, const struct json *before, const struct json *after,
                       enum json_change_kind kind);

// A value on as few lines as fit, the first one going on behind `used` characters, further ones behind `indent` blanks.
void json_change_value(struct buf *out, const struct json *v, size_t indent, size_t used);
