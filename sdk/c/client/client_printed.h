// SPDX-License-Identifier: Apache-2.0
// OUTPUT records for a client.
#pragma once

#include "sdk/c/client/settings.h"

// {"group": "ml/llama", "lines": [{"ranks": "0-3", "text": "..."}, ...], "dropped": 2}: calls on_output() for each
// line. Lines that cannot be read are ignored.
void printed_tell(const struct settings *s, const char *body, size_t len);
