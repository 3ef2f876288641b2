// SPDX-License-Identifier: Apache-2.0
// A folder of a test, with files only.
#pragma once

#include <stddef.h>

void folder_new(char path[64]);
void folder_clear(const char *path);
void folder_free(const char *path);
void folder_write(const char *path, const char *name, const char *text);      // whole or not at all
void folder_read(const char *path, const char *name, char *ret, size_t size); // "" = there is no such file
