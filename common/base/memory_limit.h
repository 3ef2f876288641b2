// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use.
#pragma once

#include <stddef.h>

// The limit of its control group, of version 1 or 2, as a container sees it, or the machine's memory where that is
// less. Bytes; 0 where neither can be read.
size_t memory_limit(void);
// Of the text of memory.max or memory.limit_in_bytes; 0 where that is no limit ("max").
size_t memory_limit_of(const char *text);
// Of an option: "512Mi", "3Gi", "1G", "1073741824"; 0 where it is none of that.
size_t memory_limit_parse(const char *text);
