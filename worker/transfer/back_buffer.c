// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/back_buffer.h"

#include "common/base/mem.h"
#include "worker/transfer/own_pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, ALIGN_SMALL = 64, FREE_MS = 1000 };

struct back_room {
    struct block block;
    char *at;
    bool swaps; // the room is a mapping of its own, from the page of `at` to the page of its end
};

struct back_buffer {
    struct back_room *rooms;
    size_t n;
    char *small; // the rooms of the host that have no mapping of their own
    size_t small_len, page;
    bool may_swap, abandoned;
};

struct back_buffer *back_buffer_new(bool swaps)
{
    struct back_buffer *s = xcalloc(1, sizeof *s);
    s->may_swap = swaps;
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    return s;
}

static char *page_of(const struct back_buffer *s, const void *at)
{
    return (char *)((uintptr_t)at & ~(uintptr_t)(s->page - 1));
}

static size_t mapped_len(const struct back_buffer *s, const char *at, size_t len)
{
    return (size_t)(page_of(s, at + len + s->page - 1) - page_of(s, at));
}

static void drop(struct back_buffer *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rooms[i].swaps)
            munmap(page_of(s, s->rooms[i].at), mapped_len(s, s->rooms[i].at, s->rooms[i].block.len));
    if (s->small_len)
        munmap(s->small, s->small_len);
    free(s->rooms);
    *s = (struct back_buffer){.page = s->page, .may_swap = s->may_swap, .abandoned = s->abandoned};
}

void back_buffer_free(struct back_buffer *s)
{
    if (!s)
        return;
    drop(s);
    free(s);
}

// Maps `len` bytes at the same offset within a huge page as `like`, so that the kernel can exchange whole huge pages.
// `access`: for mmap(). NULL: there is no memory.
static char *map_like(const struct back_buffer *s, const char *like, size_t len, int access)
{
    size_t offset = (uintptr_t)like & (HUGE_PAGE - 1), size = offset + len + HUGE_PAGE;
    char *all = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    char *begin = (char *)(((uintptr_t)all + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1)), *at = begin + offset;
    char *first = page_of(s, at), *end = page_of(s, at + len + s->page - 1);
    if (first > all)
        munmap(all, (size_t)(first - all));
    if (all + size > end)
        munmap(end, (size_t)(all + size - end));
    return at;
}

static bool is_same(const struct back_buffer *s, const struct blocks *b)
{
    bool same = b->n == s->n;
    for (size_t i = 0; same && i < b->n; i++) {
        const struct block *was = &s->rooms[i].block, *is = &b->list[i];
        same = is->data == was->data && is->len == was->len && is->on_device == was->on_device;
    }
    return same;
}

static int lay_long(struct back_buffer *s, struct back_room *r, struct err *err)
{
    r->at = map_like(s, r->block.data, r->block.len, PROT_READ | PROT_WRITE);
    if (!r->at)
        return err_set(err, ERR_NOMEM, "no memory for %zu bytes of new weights beside the old ones: %s", r->block.len,
                       strerror(errno));
    r->swaps = true;
    (void)madvise(page_of(s, r->at), mapped_len(s, r->at, r->block.len), MADV_HUGEPAGE); // a kernel may have none
    return 0;
}

static size_t small_len_of(const struct block *b)
{
    return (b->len + ALIGN_SMALL - 1) & ~(size_t)(ALIGN_SMALL - 1);
}

static int lay_small(struct back_buffer *s, size_t len, struct err *err)
{
    size_t at = 0;
    if (!len)
        return 0;
    s->small = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->small == MAP_FAILED)
        return err_set(err, ERR_NOMEM, "no memory for %zu bytes of new weights beside the old ones: %s", len,
                       strerror(errno));
    s->small_len = len;
    for (size_t i = 0; i < s->n; i++) {
        if (s->rooms[i].swaps || s->rooms[i].block.on_device)
            continue;
        s->rooms[i].at = s->small + at;
        at += small_len_of(&s->rooms[i].block);
    }
    return 0;
}

static int lay_host(struct back_buffer *s, const struct blocks *b, struct err *err)
{
    size_t small = 0, swaps = 0;
    int r = 0;
    drop(s);
    s->rooms = xcalloc(b->n + 1, sizeof *s->rooms);
    s->n = b->n;
    struct own_pages *own = own_pages_read();
    for (size_t i = 0; r == 0 && i < b->n; i++) {
        const struct block *block = &b->list[i];
        s->rooms[i].block = *block;
        if (block->on_device)
            continue;
        if (s->may_swap && block->len >= BACK_BUFFER_SWAP_MIN && swaps < BACK_BUFFER_SWAPS_MAX &&
            own_pages_have(own, block->data, block->len)) {
            swaps++;
            r = lay_long(s, &s->rooms[i], err);
        } else {
            small += small_len_of(block);
        }
    }
    own_pages_free(own);
    return r < 0 ? r : lay_small(s, small, err);
}

// A device that hangs may still write there, and frees the memory when it is done.
static void free_on_device(struct back_buffer *s, const struct blocks *b)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rooms[i].block.on_device)
            sweeper_drop(b->gpu->sweeper, b->gpu->device, TAKE_PTR(s->rooms[i].at));
    if (b->gpu)
        (void)sweeper_wait(b->gpu->sweeper, FREE_MS);
}

int back_buffer_lay(struct back_buffer *s, const struct blocks *b, struct err *err)
{
    int r = is_same(s, b) ? 0 : lay_host(s, b, err);
    for (size_t i = 0; r == 0 && i < b->n; i++)
        if (b->list[i].on_device && b->list[i].len && !s->rooms[i].at)
            r = blocks_alloc(b, b->list[i].len, (void **)&s->rooms[i].at, err);
    if (r < 0) {
        back_buffer_rest(s, b);
        drop(s);
    }
    return r;
}

void *back_buffer_at(const struct back_buffer *s, size_t i)
{
    return s->rooms[i].at;
}

// Exchanges the whole pages of the block with the pages of the room, which has another address afterwards. Other
// threads never see a hole in the block. False: the block has not changed, and must be copied.
static bool swap_pages(struct back_buffer *s, struct back_room *r, char *first, size_t len)
{
    size_t before = (size_t)(first - (char *)r->block.data);
    char *from = r->at + before, *to = map_like(s, r->block.data, r->block.len, PROT_NONE);
    if (!to)
        return false;
    // The old pages move to a new place, and leave empty memory behind.
    if (mremap(first, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to + before) == MAP_FAILED) {
        munmap(page_of(s, to), mapped_len(s, to, r->block.len));
        return false;
    }
    if (mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, first) == MAP_FAILED) {
        memcpy(first, from, len);
        munmap(page_of(s, to), mapped_len(s, to, r->block.len));
        return true;
    }
    // The ends that share a page with other data stay in the block. The room needs memory there again.
    char *end = to + before + len, *last = page_of(s, to + r->block.len + s->page - 1);
    if (to + before > page_of(s, to))
        (void)mprotect(page_of(s, to), s->page, PROT_READ | PROT_WRITE);
    if (last > end)
        (void)mprotect(end, s->page, PROT_READ | PROT_WRITE);
    if (from > page_of(s, r->at))
        munmap(page_of(s, r->at), s->page);
    if (page_of(s, r->at + r->block.len + s->page - 1) > from + len)
        munmap(from + len, s->page);
    r->at = to;
    return true;
}

static size_t swap_room(struct back_buffer *s, struct back_room *r, const struct own_pages *own)
{
    char *data = r->block.data, *end = data + r->block.len;
    char *first = page_of(s, data + s->page - 1), *last = page_of(s, end);
    if (!r->swaps || !own_pages_have(own, data, r->block.len)) {
        if (r->block.len)
            memcpy(data, r->at, r->block.len);
        return r->block.len;
    }
    // The ends are copied first, because the room moves with its pages.
    memcpy(data, r->at, (size_t)(first - data));
    memcpy(last, r->at + (last - data), (size_t)(end - last));
    if (swap_pages(s, r, first, (size_t)(last - first)))
        return (size_t)(first - data) + (size_t)(end - last);
    memcpy(first, r->at + (first - data), (size_t)(last - first));
    return r->block.len;
}

// The program may have put other memory at the same address since the rooms were made. NULL: no block has pages to
// exchange.
static struct own_pages *read_again(const struct back_buffer *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rooms[i].swaps)
            return own_pages_read();
    return NULL;
}

int back_buffer_swap(struct back_buffer *s, const struct blocks *b, size_t *ret_copied, struct err *err)
{
    struct own_pages *own = read_again(s);
    int r = 0;
    *ret_copied = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct back_room *room = &s->rooms[i];
        if (!room->block.on_device)
            *ret_copied += swap_room(s, &s->rooms[i], own);
        else if (r == 0 && room->block.len)
            r = device_copy(b->gpu->device, room->block.data, room->at, room->block.len, copier_stream(b->gpu->copier),
                            err);
    }
    own_pages_free(own);
    return r < 0 ? r : blocks_finish(b, err);
}

void back_buffer_rest(struct back_buffer *s, const struct blocks *b)
{
    for (size_t i = 0; i < s->n; i++) {
        struct back_room *r = &s->rooms[i];
        if (r->swaps)
            (void)madvise(page_of(s, r->at), mapped_len(s, r->at, r->block.len), MADV_FREE);
    }
    free_on_device(s, b);
}

// If it fails, the memory stays as it is.
static void bar(void *at, size_t len)
{
    (void)mmap(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void back_buffer_abandon(struct back_buffer *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct back_room *r = &s->rooms[i];
        if (r->swaps)
            bar(page_of(s, r->at), mapped_len(s, r->at, r->block.len));
        r->swaps = false;
    }
    if (s->small_len)
        bar(s->small, s->small_len);
    s->small_len = 0;
    s->abandoned = true;
    drop(s);
}

bool back_buffer_was_abandoned(const struct back_buffer *s)
{
    return s->abandoned;
}
