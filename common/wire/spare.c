// SPDX-License-Identifier: Apache-2.0
#include "common/wire/spare.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void spare_init(struct spare *s, size_t max_bytes)
{
    *s = (struct spare){.max_bytes = max_bytes};
}

static struct spare_block remove_at(struct spare *s, unsigned i)
{
    struct spare_block b = s->blocks[i];
    s->bytes -= b.size;
    s->n--;
    memmove(&s->blocks[i], &s->blocks[i + 1], (s->n - i) * sizeof *s->blocks);
    return b;
}

void spare_done(struct spare *s)
{
    while (s->n)
        free(remove_at(s, 0).data);
}

static char *take(struct spare *s, size_t size, bool largest, size_t *ret_size)
{
    unsigned best = SPARE_BLOCKS;
    if (!s || size < SPARE_MIN)
        return NULL;
    for (unsigned i = 0; i < s->n; i++)
        if (s->blocks[i].size >= size &&
            (best == SPARE_BLOCKS || largest == (s->blocks[i].size > s->blocks[best].size)))
            best = i;
    if (best == SPARE_BLOCKS)
        return NULL;
    struct spare_block b = remove_at(s, best);
    *ret_size = b.size;
    return b.data;
}

char *spare_take(struct spare *s, size_t size, size_t *ret_size)
{
    return take(s, size, false, ret_size);
}

char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size)
{
    return take(s, size, true, ret_size);
}

void spare_give(struct spare *s, char *data, size_t size)
{
    if (!s || size < SPARE_MIN || size > s->max_bytes) {
        free(data);
        return;
    }
    while (s->n == SPARE_BLOCKS || size > s->max_bytes - s->bytes)
        free(remove_at(s, 0).data);
    s->blocks[s->n++] = (struct spare_block){data, size};
    s->bytes += size;
}
