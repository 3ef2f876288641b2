// SPDX-License-Identifier: Apache-2.0
// The last line of what a process has printed that says something, which is where programs put what is wrong.
#pragma once

#include "common/base/arena.h"

// One line of at most 200 bytes, for messages and tables. "": there is none. text: NULL or any valid UTF-8.
const char *last_words(const char *text, struct arena *a);
