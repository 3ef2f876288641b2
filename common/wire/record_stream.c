// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_stream.h"

#include "common/wire/record_queue.h"

static int follow(struct record_stream *s, struct record_queue *q, struct record_item *it, const struct err *err)
{
    if (!it)
        return err->code;
    it->stream = &s->item;
    *s = (struct record_stream){.queue = q, .item = it, .whole = true};
    return 0;
}

int record_stream_push(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                       const struct record_part *parts, size_t n, struct err *err)
{
    return follow(s, q, record_item_push(q, h, parts, n, err), err);
}

int record_stream_copy(struct record_stream *s, struct record_queue *q, const struct record_header *h, const void *body,
                       size_t len, struct err *err)
{
    return follow(s, q, record_item_copy(q, h, body, len, err), err);
}

bool record_stream_unsent(const struct record_stream *s)
{
    return s->item && s->item->sent == 0;
}

bool record_stream_withdraw(struct record_stream *s)
{
    if (!record_stream_unsent(s))
        return false;
    record_item_free(s->queue, s->item);
    return true;
}

int record_stream_begin(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                        const struct record_part *parts, size_t n, struct err *err)
{
    struct record_item *it = record_item_begin(q, h);
    int r = record_item_add(q, it, parts, n, err);
    if (r < 0) {
        record_item_free(q, it);
        return r;
    }
    it->open = true;
    it->stream = &s->item;
    *s = (struct record_stream){.queue = q, .item = it};
    return 0;
}

int record_stream_add(struct record_stream *s, const struct record_part *parts, size_t n, struct err *err)
{
    if (!s->item)
        return 0;
    int r = record_item_add(s->queue, s->item, parts, n, err);
    if (r == 0)
        record_item_unpark(s->queue, s->item);
    return r;
}

void record_stream_end(struct record_stream *s)
{
    if (!s->item)
        return;
    s->item->open = false;
    record_item_unpark(s->queue, s->item);
}

bool record_stream_drop(struct record_stream *s)
{
    if (!s->item || !s->item->open)
        return false;
    list_splice(s->queue->items.next, &s->item->followers);
    return record_item_free(s->queue, s->item);
}

size_t record_stream_waits(const struct record_stream *s)
{
    return s->item ? s->item->len - s->item->sent : 0;
}

void record_stream_forget(struct record_stream *s)
{
    (void)record_stream_drop(s);
    if (s->item)
        s->item->stream = NULL;
    *s = (struct record_stream){0};
}
