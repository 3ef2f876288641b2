// SPDX-License-Identifier: Apache-2.0
// Decodes objects from JSON, by their kind.
#pragma once

#include "operator/api/object.h"

// Decodes one object of the kind that the caller expects. Items of a list have no kind of their own. ERR_INVALID if the
// JSON names another kind. The message of an error names the JSON path. *ret has one reference.
int object_decode(enum kind kind, const char *json, size_t len, const struct object **ret, struct err *err);
