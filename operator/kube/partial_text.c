// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/partial_text.h"

#include "common/base/json_scan.h"

// etcd refuses objects over 1.5 MiB. JSON writes some bytes as six ("\u003c" for "<"), so the JSON of an object has at
// most 6 x 1.5 MiB = 9 MiB and the names of its members.
enum {
    TEXT_MAX = 16 * 1024 * 1024,
    TEXT_KEEP = 64 * 1024, // memory that stays allocated after a rare long text
};

void partial_text_init(struct partial_text *t, size_t max)
{
    *t = (struct partial_text){.begun = BUF_INIT(max ? max : TEXT_MAX)};
}

void partial_text_done(struct partial_text *t)
{
    buf_done(&t->begun);
}

void partial_text_reset(struct partial_text *t)
{
    buf_reset(&t->begun);
    t->skipping = false;
}

static size_t trimmed(const char *text, size_t len)
{
    while (len && json_is_space(text[len - 1]))
        len--;
    return len;
}

// Hands out what has arrived, and empties the buffer.
static int hand_out(struct buf *b, size_t len, bool whole, text_fn fn, void *ctx, struct err *err)
{
    int r = len ? fn(ctx, b->data, len, whole, err) : 0;
    if (b->size > TEXT_KEEP)
        buf_done(b);
    else
        buf_reset(b);
    return r;
}

int partial_text_take(struct partial_text *t, const char *bytes, size_t n, bool ended, text_fn fn, void *ctx,
                      struct err *err)
{
    size_t room = t->begun.cap - t->begun.len;
    bool skipping = t->skipping;
    t->skipping = !ended && (skipping || n > room);
    if (skipping)
        return 0;
    if (n > room) {
        (void)buf_append(&t->begun, bytes, room);
        return hand_out(&t->begun, t->begun.len, false, fn, ctx, err);
    }
    if (ended && !t->begun.len) { // it has arrived whole
        n = trimmed(bytes, n);
        return n ? fn(ctx, bytes, n, true, err) : 0;
    }
    (void)buf_append(&t->begun, bytes, n);
    return ended ? hand_out(&t->begun, trimmed(t->begun.data, t->begun.len), true, fn, ctx, err) : 0;
}
