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
#define LENT_MIN ((size_t)32 << 20) // shorter ones are not worth the system call

void spare_init(struct spare *s, size_t max_bytes)
{
    *s = (struct spare){.max_bytes = max_bytes};
}

// Marks the whole mapping. If a part is marked, the kernel makes two mappings of it, and cannot move them together.
static char *choose_pages(const struct spare *s, char *data, size_t size)
{
    (void)madvise(data, size, s && s->in_steps ? MADV_NOHUGEPAGE : MADV_HUGEPAGE); // a kernel without them refuses
    return data;
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static char *map(const struct spare *s, size_t size)
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
    return choose_pages(s, p + skip, len);
}

char *spare_new(const struct spare *s, size_t size)
{
    return size < SPARE_OWN ? xmalloc(size) : map(s, size);
}

char *spare_grow(const struct spare *s, char *data, size_t size, size_t to)
{
    assert(size >= SPARE_OWN || to < SPARE_OWN);
    if (size < SPARE_OWN)
        return xrealloc(data, to, 1);
    void *p = mremap(data, size, to, 0);
    if (p == MAP_FAILED)
        p = mremap(data, size, to, MREMAP_MAYMOVE | MREMAP_FIXED, map(s, to));
    return choose_pages(s, mem_must(p == MAP_FAILED ? NULL : p), to);
}

void spare_free(char *data, size_t size)
{
    if (size < SPARE_OWN)
        free(data);
    else
        munmap(data, size);
}

static struct spare_block remove_at(struct spare *s, unsigned i)
{
    struct spare_block b = s->blocks[i];
    s->bytes -= b.size;
    s->n--;
    memmove(&s->blocks[i], &s->blocks[i + 1], (s->n - i) * sizeof *s->blocks);
    return b;
}

static bool is_over(const struct spare *s, unsigned n)
{
    return s->bytes > s->max_bytes || n > SPARE_BLOCKS;
}

bool spare_is_over(const struct spare *s)
{
    return is_over(s, s->n);
}

// Gives back `most` bytes from the end of a block, or the whole block. Returns the number of bytes.
static size_t cut(struct spare_block *b, size_t most)
{
    size_t left = b->size > most ? whole_pages(b->size - most) : 0, gone = b->size - left;
    if (left < SPARE_OWN) { // so short a block would look like one of malloc()
        gone = b->size;
        spare_free(b->data, b->size);
    } else {
        munmap(b->data + left, gone);
    }
    b->size -= gone;
    return gone;
}

static void give_back(struct spare *s, size_t most)
{
    unsigned n = 0; // blocks that are gone
    for (size_t bytes = 0, cuts; bytes < most && is_over(s, s->n - n); bytes += cuts) {
        cuts = cut(&s->blocks[n], most);
        s->bytes -= cuts;
        n += s->blocks[n].size == 0;
    }
    s->n -= n;
    if (n)
        memmove(s->blocks, s->blocks + n, s->n * sizeof *s->blocks);
}

void spare_go_on(struct spare *s)
{
    give_back(s, SPARE_STEP);
}

void spare_done(struct spare *s)
{
    for (unsigned i = 0; i < s->n; i++)
        spare_free(s->blocks[i].data, s->blocks[i].size);
    free(TAKE_PTR(s->blocks));
    s->bytes = s->n = s->size = 0;
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
    return take(s, size, 4 * size, false, ret_size); // a piece must not take a block for a whole body
}

char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size)
{
    return take(s, size, SIZE_MAX, true, ret_size);
}

// The pages stay until memory is short. Until then, writing to them again costs nothing extra. With short pages, this
// call takes as long as unmapping them.
static void lend_to_kernel(const struct spare *s, char *data, size_t size)
{
    size_t skip = -(uintptr_t)data % PAGE_LONG;
    if (size >= LENT_MIN && !s->in_steps)
        (void)madvise(data + skip, (size - skip) / PAGE_LONG * PAGE_LONG, MADV_FREE);
}

void spare_give(struct spare *s, char *data, size_t size)
{
    if (!s || size < SPARE_MIN) {
        spare_free(data, size);
        return;
    }
    MEM_GROW(s->blocks, s->n, s->size);
    bool kept = size <= s->max_bytes;
    unsigned at = kept ? s->n : 0; // a block that is too long is given back before the others
    memmove(&s->blocks[at + 1], &s->blocks[at], (s->n - at) * sizeof *s->blocks);
    s->blocks[at] = (struct spare_block){data, size};
    s->bytes += size;
    s->n++;
    if (kept)
        lend_to_kernel(s, data, size);
    if (!s->in_steps)
        give_back(s, SIZE_MAX);
}
