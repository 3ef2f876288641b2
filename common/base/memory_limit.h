// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use.
#pragma once

#include <stddef.h>

// The limit of the process's control group (version 1 or 2, as a container sees it), or the machine's memory if that is
// less. In bytes; 0 if neither can be read.
size_t memory_limit(void);
// Reads the text of memory.max or memory.limit_in_bytes; 0 if it sets no limit ("max").
size_t memory_limit_of(const char *text);
// Reads the value of an option: "512Mi", "3Gi", "1G", "1073741824"; 0 if it is not valid.
size_t memory_limit_parse(const char *text);
