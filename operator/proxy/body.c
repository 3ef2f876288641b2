// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/body.h"

#include "common/base/mem.h"

#include <string.h>

#define PIECE_MIN ((size_t)256) // least charge for a piece: it costs more memory than its bytes

static struct blob *refer(const struct call_body *b, struct quota *quota)
{
    return blob_recharge(b->blob, quota) ? blob_ref(b->blob) : NULL;
}

struct blob *body_keep(const struct call_body *b, struct quota *quota)
{
    return b->blob ? refer(b, quota) : blob_copy(b->data, b->len, quota);
}

struct blob *body_keep_piece(const struct call_body *b, struct quota *quota)
{
    return b->blob ? refer(b, quota) : body_copy_piece(b, quota);
}

struct blob *body_copy_piece(const struct call_body *b, struct quota *quota)
{
    struct blob *copy = blob_new(MAX(b->len, PIECE_MIN), quota);
    if (!copy)
        return NULL;
    memcpy(copy->data, b->data, b->len);
    copy->len = b->len;
    return copy;
}

struct record_part body_part(const struct call_body *b, struct blob *kept)
{
    return (struct record_part){kept, b->blob ? (size_t)(b->data - b->blob->data) : 0, b->len};
}
