// SPDX-License-Identifier: Apache-2.0
// The last line with text that a process has printed. Programs put their reason there.
#pragma once

#include "common/base/arena.h"

// One line of at most 200 bytes, for messages and tables. "": there is none. text: NULL or any valid UTF-8.
const char *last_line(const char *text, struct arena *a);
