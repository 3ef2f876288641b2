// SPDX-License-Identifier: Apache-2.0
#include "common/base/free_list.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct free_list_block {
    struct free_list_block *next;
};

#ifdef __SANITIZE_ADDRESS__
enum { KEPT = 0 }; // otherwise the sanitizer would not find uses of blocks that were given back
#else
enum { KEPT = FREE_LIST_MAX };
#endif

void *free_list_take(struct free_list *l, size_t size)
{
    struct free_list_block *b = l->first;
    if (!b)
        return xmalloc(MAX(size, sizeof *b));
    l->first = b->next;
    l->n--;
    return b;
}

void free_list_give(struct free_list *l, void *block)
{
    struct free_list_block *b = block;
    if (!b || l->n + 1 > KEPT) {
        free(b);
        return;
    }
    b->next = l->first;
    l->first = b;
    l->n++;
}

void free_list_done(struct free_list *l)
{
    for (struct free_list_block *b; (b = l->first);) {
        l->first = b->next;
        free(b);
    }
    l->n = 0;
}
