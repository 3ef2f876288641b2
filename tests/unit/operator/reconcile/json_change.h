// SPDX-License-Identifier: Apache-2.0
// The changes that turn one JSON document into another one, one change per line:
//
// |:     readyReplicas: 0
//     conditions.Ready.reason: "Starting"
//     placements: gone                      (this member or item no longer exists)
//
// Items of lists are identified by their "type", or else their "name", if each item has its own. Other lists are one
// value. A list whose items have changed their order is also one value. Values are compared and written as text. A new
// value that is longer than a line is written on several lines.
#pragma once

#include "common/base/buf.h"
#include "common/base/json.h"

enum json_change_kind {
    JSON_CHANGE_WHOLE,
    JSON_CHANGE_PATCH, // `after` is a merge patch: null for a missing member and an unchanged value change nothing;
                       // a member of `before` that the patch does not mention is "not said"
};

// `before` may be NULL: then all of `after` is new. `root` is put in front of the paths, "" for nothing.
void json_change_print(struct buf *out, const char *root, const struct json *before, const struct json *after,
                       enum json_change_kind kind);

// A value on as few lines as possible. The first line continues after `used` characters, further lines after `indent`
// blanks.
void json_change_value(struct buf *out, const struct json *v, size_t indent, size_t used);
