// SPDX-License-Identifier: Apache-2.0
#include "common/wire/spare.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_LONG ((size_t)2 << 20)
#define LONG_MIN ((size_t)16 << 20) // shorter ones have short pages
#define LENT_MIN ((size_t)32 << 20) // shorter ones are not worth the system call

void spare_init(struct spare *s, size_t max_bytes)
{
    *s = (struct spare){.max_bytes = max_bytes};
}

// All of it: the kernel makes two mappings of one that is marked in part, and cannot move them together.
static char *choose_pages(char *data, size_t size)
{
    (void)madvise(data, size, size < LONG_MIN ? MADV_NOHUGEPAGE : MADV_HUGEPAGE); // a kernel without them refuses
    return data;
}

static char *map(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (size + page - 1) / page * page;
    size_t more = size >= 2 * PAGE_LONG ? PAGE_LONG : 0; // so that it begins with a long page
    void *mapped = mmap(NULL, len + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = mem_must(mapped == MAP_FAILED ? NULL : mapped);
    size_t skip = more ? -(uintptr_t)p % PAGE_LONG : 0;
    if (skip)
        munmap(p, skip);
    if (more > skip)
        munmap(p + skip + len, more - skip);
    return choose_pages(p + skip, len);
}

char *spare_new(size_t size)
{
    return size < SPARE_OWN ? xmalloc(size) : map(size);
}

char *spare_grow(char *data, size_t size, size_t to)
{
    assert(size >= SPARE_OWN || to < SPARE_OWN);
    if (size < SPARE_OWN)
        return xrealloc(data, to, 1);
    void *p = mremap(data, size, to, 0);
    if (p == MAP_FAILED)
        p = mremap(data, size, to, MREMAP_MAYMOVE | MREMAP_FIXED, map(to));
    return choose_pages(mem_must(p == MAP_FAILED ? NULL : p), to);
}

void spare_free(char *data, size_t size)
{
    if (size < SPARE_OWN)
        free(data);
    else
        munmap(data, size);
}

static void free_block(struct spare_block b)
{
    spare_free(b.data, b.size);
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
        free_block(remove_at(s, 0));
    free(TAKE_PTR(s->blocks));
    s->size = 0;
}

static char *take(struct spare *s, size_t size, size_t max, bool largest, size_t *ret_size)
{
    unsigned best = SPARE_BLOCKS;
    if (!s || size < SPARE_MIN)
        return NULL;
    for (unsigned i = s->n; i-- > 0;) {
        size_t got = s->blocks[i].size;
        if (got < size || got > max)
            continue;
        if (best == SPARE_BLOCKS || (largest ? got > s->blocks[best].size : got < s->blocks[best].size))
            best = i;
    }
    if (best == SPARE_BLOCKS)
        return NULL;
    struct spare_block b = remove_at(s, best);
    *ret_size = b.size;
    return b.data;
}

char *spare_take(struct spare *s, size_t size, size_t *ret_size)
{
    return take(s, size, 4 * size, false, ret_size); // a piece does not occupy what a whole body needs
}

char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size)
{
    return take(s, size, SIZE_MAX, true, ret_size);
}

// Its pages stay until memory is short, and are as good as before when they are written to again.
static void lend_to_kernel(char *data, size_t size)
{
    size_t skip = -(uintptr_t)data % PAGE_LONG;
    if (size >= LENT_MIN)
        (void)madvise(data + skip, (size - skip) / PAGE_LONG * PAGE_LONG, MADV_FREE);
}

void spare_give(struct spare *s, char *data, size_t size)
{
    if (!s || size < SPARE_MIN || size > s->max_bytes) {
        spare_free(data, size);
        return;
    }
    while (s->n == SPARE_BLOCKS || size > s->max_bytes - s->bytes)
        free_block(remove_at(s, 0));
    if (s->n == s->size) {
        s->size = MAX(2 * s->size, 8u);
        s->blocks = xrealloc(s->blocks, s->size, sizeof *s->blocks);
    }
    lend_to_kernel(data, size);
    s->blocks[s->n++] = (struct spare_block){data, size};
    s->bytes += size;
}
