// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blob.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/base/small.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define INSIDE_MAX ((size_t)4096)  // up to this size, one block contains both
#define STEP_MAX ((size_t)8 << 20) // a blob grows in steps of at most this size

static struct blob *block_new(size_t behind)
{
    struct blob *b = small_new(sizeof *b + behind);
    *b = (struct blob){.refs = 1, .behind = behind};
    return b;
}

static void block_free(struct blob *b)
{
    small_free(b, sizeof *b + b->behind);
}

struct blob *blob_new(size_t len, struct quota *quota)
{
    if (!quota_charge(quota, len))
        return NULL;
    bool inside = len > 0 && len <= INSIDE_MAX;
    struct blob *b = block_new(inside ? len : 0);
    b->quota = quota_ref(quota);
    b->len = b->size = b->room = len;
    b->inside = inside;
    b->data = inside ? (char *)(b + 1) : block_cache_take(quota_block_cache(quota), len, &b->room);
    if (!b->data)
        b->data = block_cache_new(quota_block_cache(quota), len);
    return b;
}

struct blob *blob_copy(const void *data, size_t len, struct quota *quota)
{
    struct blob *b = blob_new(len, quota);
    if (b && len)
        memcpy(b->data, data, len);
    return b;
}

static struct blob *of_another(char *data, size_t len)
{
    struct blob *b = block_new(0);
    b->len = b->size = b->room = len;
    b->data = data;
    return b;
}

struct blob *blob_adopt(char *data, size_t len)
{
    struct blob *b = of_another(data, len);
    b->adopted = true;
    return b;
}

struct blob *blob_lend(const void *data, size_t len)
{
    struct blob *b = of_another((char *)data, len);
    b->lent = true;
    return b;
}

struct blob *blob_in_area(struct area *a, const char *data, size_t len, uint32_t tag)
{
    struct blob *b = block_new(0);
    b->len = len;
    b->data = (char *)data;
    b->area = area_ref(a);
    b->tag = tag;
    return b;
}

static void move(struct blob *b, size_t room)
{
    struct block_cache *cache = quota_block_cache(b->quota);
    bool own = b->room >= BLOCK_CACHE_OWN; // copying it would take too much of a turn of the loop
    char *data = own ? NULL : block_cache_take_largest(cache, room, &room); // the blob need not move again soon
    if (own || (!data && !b->inside && room < BLOCK_CACHE_OWN)) {
        data = block_cache_grow(cache, b->data, b->room, room);
    } else {
        data = data ? data : block_cache_new(cache, room);
        fiber_copy(data, b->data, b->len);
        if (!b->inside)
            block_cache_give(cache, b->data, b->room);
    }
    b->data = data;
    b->room = room;
    b->inside = false;
}

bool blob_reserve(struct blob *b, size_t more)
{
    assert(b->refs == 1 && !b->lent && !b->adopted);
    size_t need = b->len + more, size = b->size;
    if (need <= size)
        return true;
    size_t grown = MAX(need, size + MIN(size / 2, STEP_MAX));
    if (need <= b->room)
        grown = MIN(grown, b->room);
    if (!quota_charge(b->quota, grown - size)) {
        grown = need; // there may be no room for the extra bytes
        if (!quota_charge(b->quota, grown - size))
            return false;
    }
    b->size = grown;
    if (grown > b->room)
        move(b, grown);
    return true;
}

bool blob_recharge(struct blob *b, struct quota *quota)
{
    if (quota == b->quota || b->area)
        return true;
    size_t charged = b->size + b->beside;
    quota_refund(b->quota, charged); // first, because a quota that is above both may not have room for it twice
    if (!quota_charge(quota, charged)) {
        quota_take_back(b->quota, charged);
        return false;
    }
    quota_unref(b->quota);
    b->quota = quota_ref(quota);
    return true;
}

bool blob_pays_beside(struct blob *b, struct quota *quota, size_t n)
{
    if (!b->quota && !b->size)
        b->quota = quota_ref(quota);
    if (!quota_charge(b->quota, n))
        return false;
    b->beside += n;
    return true;
}

bool blob_is_charged(const struct blob *b)
{
    return b->quota && !b->area;
}

struct blob *blob_ref(struct blob *b)
{
    b->refs++;
    return b;
}

void blob_unref(struct blob *b)
{
    if (!b || --b->refs)
        return;
    quota_refund(b->quota, b->size + b->beside);
    if (b->area) {
        if (b->area->give)
            b->area->give(b->area, b->data, b->tag);
        area_unref(b->area);
        quota_unref(b->quota);
        block_free(b);
        return;
    }
    if (b->adopted)
        free(b->data);
    else if (!b->inside && !b->lent)
        block_cache_give(quota_block_cache(b->quota), b->data, b->room);
    quota_unref(b->quota);
    block_free(b);
}
