// SPDX-License-Identifier: Apache-2.0
#include "common/wire/block_cache.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_LONG ((size_t)2 << 20)
#define LENT_MIN ((size_t)32 << 20) // shorter ones are not worth the system call

void block_cache_init(struct block_cache *c, size_t max_bytes)
{
    *c = (struct block_cache){.max_bytes = max_bytes};
}

// Marks the whole mapping. If a part is marked, the kernel makes two mappings of it, and cannot move them together.
static char *choose_pages(const struct block_cache *c, char *data, size_t size)
{
    (void)madvise(data, size, c && c->in_steps ? MADV_NOHUGEPAGE : MADV_HUGEPAGE); // a kernel without them refuses
    return data;
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static char *map(const struct block_cache *c, size_t size)
{
    size_t len = whole_pages(size);
    size_t more = size >= 2 * PAGE_LONG ? PAGE_LONG : 0; // so that 2 MiB are one step for the kernel
    void *mapped = mmap(NULL, len + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = mem_must(mapped == MAP_FAILED ? NULL : mapped);
    size_t skip = more ? -(uintptr_t)p % PAGE_LONG : 0;
    if (skip)
        munmap(p, skip);
    if (more > skip)
        munmap(p + skip + len, more - skip);
    return choose_pages(c, p + skip, len);
}

char *block_cache_new(const struct block_cache *c, size_t size)
{
    return size < BLOCK_CACHE_OWN ? xmalloc(size) : map(c, size);
}

char *block_cache_grow(const struct block_cache *c, char *data, size_t size, size_t to)
{
    assert(size >= BLOCK_CACHE_OWN || to < BLOCK_CACHE_OWN);
    if (size < BLOCK_CACHE_OWN)
        return xrealloc(data, to, 1);
    void *p = mremap(data, size, to, 0);
    if (p == MAP_FAILED)
        p = mremap(data, size, to, MREMAP_MAYMOVE | MREMAP_FIXED, map(c, to));
    return choose_pages(c, mem_must(p == MAP_FAILED ? NULL : p), to);
}

void block_cache_free(char *data, size_t size)
{
    if (size < BLOCK_CACHE_OWN)
        free(data);
    else
        munmap(data, size);
}

static struct block_cache_block remove_at(struct block_cache *c, unsigned i)
{
    struct block_cache_block b = c->blocks[i];
    c->bytes -= b.size;
    c->n--;
    memmove(&c->blocks[i], &c->blocks[i + 1], (c->n - i) * sizeof *c->blocks);
    return b;
}

static bool is_over(const struct block_cache *c, unsigned n)
{
    return c->bytes > c->max_bytes || n > BLOCK_CACHE_BLOCKS;
}

bool block_cache_is_over(const struct block_cache *c)
{
    return is_over(c, c->n);
}

// Gives back `most` bytes from the end of a block, or the whole block. Returns the number of bytes.
static size_t shrink(struct block_cache_block *b, size_t most)
{
    size_t left = b->size > most ? whole_pages(b->size - most) : 0, gone = b->size - left;
    if (left < BLOCK_CACHE_OWN) { // so short a block would look like one of malloc()
        gone = b->size;
        block_cache_free(b->data, b->size);
    } else {
        munmap(b->data + left, gone);
    }
    b->size -= gone;
    return gone;
}

static void give_back(struct block_cache *c, size_t most)
{
    unsigned n = 0; // blocks that are gone
    for (size_t bytes = 0, freed; bytes < most && is_over(c, c->n - n); bytes += freed) {
        freed = shrink(&c->blocks[n], most);
        c->bytes -= freed;
        n += c->blocks[n].size == 0;
    }
    c->n -= n;
    if (n)
        memmove(c->blocks, c->blocks + n, c->n * sizeof *c->blocks);
}

void block_cache_go_on(struct block_cache *c)
{
    give_back(c, BLOCK_CACHE_STEP);
}

void block_cache_done(struct block_cache *c)
{
    for (unsigned i = 0; i < c->n; i++)
        block_cache_free(c->blocks[i].data, c->blocks[i].size);
    free(TAKE_PTR(c->blocks));
    c->bytes = c->n = c->size = 0;
}

static char *take(struct block_cache *c, size_t size, size_t max, bool largest, size_t *ret_size)
{
    unsigned best = BLOCK_CACHE_BLOCKS;
    if (!c || size < BLOCK_CACHE_MIN)
        return NULL;
    for (unsigned i = c->n; i-- > 0;) {
        size_t got = c->blocks[i].size;
        if (got < size || got > max)
            continue;
        if (best == BLOCK_CACHE_BLOCKS || (largest ? got > c->blocks[best].size : got < c->blocks[best].size))
            best = i;
    }
    if (best == BLOCK_CACHE_BLOCKS)
        return NULL;
    struct block_cache_block b = remove_at(c, best);
    *ret_size = b.size;
    return b.data;
}

char *block_cache_take(struct block_cache *c, size_t size, size_t *ret_size)
{
    return take(c, size, 4 * size, false, ret_size); // a piece must not take a block for a whole body
}

char *block_cache_take_largest(struct block_cache *c, size_t size, size_t *ret_size)
{
    return take(c, size, SIZE_MAX, true, ret_size);
}

// The pages stay until memory is short. Until then, writing to them again costs nothing extra. With short pages, this
// call takes as long as unmapping them.
static void lend_to_kernel(const struct block_cache *c, char *data, size_t size)
{
    size_t skip = -(uintptr_t)data % PAGE_LONG;
    if (size >= LENT_MIN && !c->in_steps)
        (void)madvise(data + skip, (size - skip) / PAGE_LONG * PAGE_LONG, MADV_FREE);
}

void block_cache_give(struct block_cache *c, char *data, size_t size)
{
    if (!c || size < BLOCK_CACHE_MIN) {
        block_cache_free(data, size);
        return;
    }
    MEM_GROW(c->blocks, c->n, c->size);
    bool kept = size <= c->max_bytes;
    unsigned at = kept ? c->n : 0; // a block that is too long is given back before the others
    memmove(&c->blocks[at + 1], &c->blocks[at], (c->n - at) * sizeof *c->blocks);
    c->blocks[at] = (struct block_cache_block){data, size};
    c->bytes += size;
    c->n++;
    if (kept)
        lend_to_kernel(c, data, size);
    if (!c->in_steps)
        give_back(c, SIZE_MAX);
}
