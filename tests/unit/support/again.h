// SPDX-License-Identifier: Apache-2.0
// This program, run again with other libraries in reach: those that a process has loaded, it keeps.
#pragma once

#include <stddef.h>

// Returns the output with that one argument. It looks for libraries in the folders `path` and in the system's folders.
void again(const char *argument, const char *path, char *out, size_t size);
// In that folder, a library of this name that has none of the functions that are looked for.
void again_make_empty_library(const char *folder, const char *name);
