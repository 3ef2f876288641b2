// SPDX-License-Identifier: Apache-2.0
// The functions of a library that the process loads when it needs them, by tables of their names.
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset; // of the pointer to the function
    bool optional; // old libraries do not have it, and the pointer is NULL then
};

// Sets the pointers in `ret`. Returns the name of the first function that is missing, NULL = none.
static inline const char *symbols_find(void *library, const struct symbol *symbols, size_t n, void *ret)
{
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(library, symbols[i].name);
        if (!p && !symbols[i].optional)
            return symbols[i].name;
        memcpy((char *)ret + symbols[i].offset, &p, sizeof p);
    }
    return NULL;
}
