// SPDX-License-Identifier: Apache-2.0
// The body of an ERROR record as its receiver sees it (docs/protocol.md, "Answers").
#pragma once

#include "common/base/err.h"

#include <stddef.h>

// Code (ERR_INTERNAL for one that is not ours, such as FAILED), message and retryAfterMs. What cannot be read is an
// ERR_PROTO that says so: there is an error in any case.
void error_body_read(const char *body, size_t len, struct err *ret);
