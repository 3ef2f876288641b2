// SPDX-License-Identifier: Apache-2.0
// Converts the documents of a YAML text to JSON, by kubectl's rules: a plain scalar that looks like null, a boolean or
// a number becomes one. Any other scalar becomes a string. Aliases are expanded.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stddef.h>

enum { YAML_DEPTH_MAX = 64, YAML_JSON_MAX = 4 * 1024 * 1024 };

// Puts the JSON texts of all documents that are not empty into *ret, in the arena. ERR_INVALID names the line.
// ERR_LIMIT: the JSON is deeper or longer than a manifest may be. Aliases can make it long.
int yaml_to_json(const char *text, size_t len, struct arena *a, const char *const **ret, size_t *n, struct err *err);
