// SPDX-License-Identifier: Apache-2.0
// memcpy() for bodies that may be long: from COPY_LONG bytes on past the caches, in half the time. A plain copy first
// reads every line that it writes, and drives out of the caches what is used; nobody reads a body that soon.
#ifndef CADRE_BASE_COPY_H
#define CADRE_BASE_COPY_H

#include <stddef.h>

#define COPY_LONG ((size_t)4 << 20) // shorter ones may still be in the cache of the core that reads them next

void copy_bytes(void *to, const void *from, size_t len); // do not overlap; NULL only where len is 0

#endif
