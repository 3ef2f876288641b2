// SPDX-License-Identifier: Apache-2.0
// The documents of a YAML text as JSON, by kubectl's rules: plain scalars become null, booleans and
// numbers where they look like them, and strings otherwise. Aliases are expanded.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stddef.h>

enum { YAML_DEPTH_MAX = 64, YAML_JSON_MAX = 4 * 1024 * 1024 };

// *ret: the JSON texts of the documents that are not empty, in the arena. ERR_INVALID names the line; ERR_LIMIT: deeper
// or longer (aliases may stand for anything) than a manifest is.
int yaml_to_json(const char *text, size_t len, struct arena *a, const char *const **ret, size_t *n, struct err *err);
