// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_body.h"

#include <string.h>

struct blob *body_join(const struct blob *body, const struct blob *tail, struct quota *quota)
{
    struct blob *whole = blob_new(body->len + tail->len, quota);
    if (!whole)
        return NULL;
    memcpy(whole->data, body->data, body->len);
    memcpy(whole->data + body->len, tail->data, tail->len);
    return whole;
}

int body_head(const struct blob *body, struct call_head *ret, struct err *err)
{
    struct record_call parts;
    int r = record_call_decode(body->data, body->len, &parts, err);
    return r < 0 ? r : call_head_decode(parts.head, parts.head_len, ret, err);
}

// Returns true if the arguments are not in the body. They begin in the tail then.
static bool ends_with_head(const struct blob *body)
{
    struct record_call parts;
    struct err ignored = ERR_INIT;
    return record_call_decode(body->data, body->len, &parts, &ignored) < 0 || !parts.args_len;
}

struct blob *body_keep(const struct record *r, struct quota *quota, struct blob **ret_tail)
{
    *ret_tail = r->tail;
    if (r->blob && !blob_recharge(r->blob, quota))
        return NULL;
    struct blob *body = r->blob ? blob_ref(r->blob) : blob_copy(r->body, r->len, quota);
    if (!body || !r->tail || ends_with_head(body))
        return body;
    struct blob *whole = body_join(body, r->tail, quota);
    blob_unref(body);
    *ret_tail = NULL;
    return whole;
}
