// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blob.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct blob *blob_new(size_t len, struct quota *quota)
{
    if (!quota_charge(quota, len))
        return NULL;
    struct blob *b = xmalloc(sizeof *b);
    *b = (struct blob){.refs = 1, .len = len, .data = xmalloc(len), .size = len, .quota = quota_ref(quota)};
    return b;
}

struct blob *blob_copy(const void *data, size_t len, struct quota *quota)
{
    struct blob *b = blob_new(len, quota);
    if (b && len)
        memcpy(b->data, data, len);
    return b;
}

bool blob_reserve(struct blob *b, size_t more)
{
    assert(b->refs == 1);
    size_t need = b->len + more, size = b->size;
    if (need <= size)
        return true;
    size_t grown = MAX(need, size + size / 2);
    if (!quota_charge(b->quota, grown - size)) {
        grown = need; // the spare room may be what does not fit
        if (!quota_charge(b->quota, grown - size))
            return false;
    }
    b->data = xrealloc(b->data, grown, 1);
    b->size = grown;
    return true;
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
    quota_refund(b->quota, b->size);
    quota_unref(b->quota);
    free(b->data);
    free(b);
}
