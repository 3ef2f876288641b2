// SPDX-License-Identifier: Apache-2.0
#include "common/base/reuse.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct reuse_block {
    struct reuse_block *next;
};

#ifdef __SANITIZE_ADDRESS__
enum { KEPT = 0 }; // otherwise the sanitizer would not find uses of blocks that were given back
#else
enum { KEPT = REUSE_MAX };
#endif

void *reuse_take(struct reuse *r, size_t size)
{
    struct reuse_block *b = r->first;
    if (!b)
        return xmalloc(MAX(size, sizeof *b));
    r->first = b->next;
    r->n--;
    return b;
}

void reuse_give(struct reuse *r, void *block)
{
    struct reuse_block *b = block;
    if (!b || r->n + 1 > KEPT) {
        free(b);
        return;
    }
    b->next = r->first;
    r->first = b;
    r->n++;
}

void reuse_done(struct reuse *r)
{
    for (struct reuse_block *b; (b = r->first);) {
        r->first = b->next;
        free(b);
    }
    r->n = 0;
}
