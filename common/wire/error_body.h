// SPDX-License-Identifier: Apache-2.0
// The body of an ERROR record as its receiver sees it (docs/protocol.md, "Answers").
#pragma once

#include "common/base/err.h"

#include <stddef.h>

// Sets code (ERR_INTERNAL for a code that is not ours, such as FAILED), message and retryAfterMs. If the body cannot be
// read, sets an ERR_PROTO that says so. So there is always an error.
void error_body_read(const char *body, size_t len, struct err *ret);
