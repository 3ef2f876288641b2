// SPDX-License-Identifier: Apache-2.0
// Which memory of this process is private memory of no file, readable and writable: /proc/self/maps.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct own_pages;

struct own_pages *own_pages_read(void);
void own_pages_free(struct own_pages *p);                                     // accepts NULL
bool own_pages_have(const struct own_pages *p, const void *data, size_t len); // all of it
