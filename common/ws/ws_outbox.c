// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_outbox.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_A_TURN 16 // then others write

void ws_outbox_init(struct ws_outbox *o, size_t max_queue)
{
    *o = (struct ws_outbox){0};
    ws_queue_init(&o->queue, max_queue);
}

static void drop_frame(struct ws_outbox *o)
{
    gather_done(&o->frame);
    free(TAKE_PTR(o->data));
}

void ws_outbox_done(struct ws_outbox *o)
{
    ws_queue_done(&o->queue);
    drop_frame(o);
    o->close = OUTBOX_CLOSED;
}

void ws_outbox_raw(struct ws_outbox *o, char *data, size_t len)
{
    o->data = data;
    gather_add(&o->frame, data, len, NULL);
}

void ws_outbox_pong(struct ws_outbox *o, const char *data, size_t len)
{
    memcpy(o->pong, data, len);
    o->pong_len = len;
    o->pong_due = true; // 5.5.3: only the last ping needs an answer
}

void ws_outbox_close(struct ws_outbox *o, unsigned code, const char *reason, bool flush)
{
    if (o->close == OUTBOX_CLOSED)
        return;
    o->close = flush ? OUTBOX_CLOSE_AFTER_QUEUE : OUTBOX_CLOSE_NEXT;
    o->reason_len = code == FRAME_CLOSE_NO_CODE ? 0 : frame_close_encode(o->reason, code, reason);
}

bool ws_outbox_pending(const struct ws_outbox *o)
{
    return o->data != NULL;
}

// Allocates room for a payload, with room before it for the header.
static char *frame_alloc(struct ws_outbox *o, size_t size)
{
    o->data = xmalloc(FRAME_HEADER_MAX + size);
    return o->data + FRAME_HEADER_MAX;
}

// The header goes before the first segment of the payload. The room before the payload is for it.
static void frame_encode(struct ws_outbox *o, const struct ws_chunk *chunk)
{
    char *payload = o->data + FRAME_HEADER_MAX;
    uint8_t key[4] = {0};
    size_t head = frame_header_size(chunk->len, true);
    if (!o->frame.n)
        gather_add(&o->frame, payload, chunk->len, NULL);
    if (!o->zero_mask) { // then all of the payload is in one segment
        ws_mask_next(&o->mask, key);
        frame_mask(payload, chunk->len, key, 0);
    }
    frame_header_encode(payload - head, chunk->fin, chunk->opcode, chunk->len, key);
    gather_lead(&o->frame, head);
}

static void control_encode(struct ws_outbox *o, enum frame_opcode opcode, const char *data, size_t len)
{
    char *payload = frame_alloc(o, len);
    if (len)
        memcpy(payload, data, len);
    frame_encode(o, &(struct ws_chunk){opcode, true, len});
}

static void close_encode(struct ws_outbox *o)
{
    o->close = OUTBOX_CLOSED;
    control_encode(o, FRAME_CLOSE, o->reason, o->reason_len);
}

static bool queue_encode(struct ws_outbox *o)
{
    size_t waits = ws_queue_bytes(&o->queue), size = MAX(MIN(waits, RECORD_MESSAGE), (size_t)4096);
    struct ws_chunk chunk;
    if (!waits)
        return false;
    char *payload = frame_alloc(o, size);
    if (!(o->gathers ? ws_queue_gather(&o->queue, payload, size, &o->frame, &chunk)
                     : ws_queue_fill(&o->queue, payload, size, &chunk))) {
        drop_frame(o);
        return false;
    }
    frame_encode(o, &chunk);
    return true;
}

// False = there is nothing to send.
static bool encode_next(struct ws_outbox *o)
{
    if (o->waits || o->close == OUTBOX_CLOSED)
        return false;
    if (o->close == OUTBOX_CLOSE_NEXT) {
        close_encode(o);
    } else if (o->pong_due) {
        o->pong_due = false;
        control_encode(o, FRAME_PONG, o->pong, o->pong_len);
    } else if (o->ping_due) {
        o->ping_due = false;
        control_encode(o, FRAME_PING, NULL, 0);
    } else if (!queue_encode(o)) {
        if (o->close != OUTBOX_CLOSE_AFTER_QUEUE)
            return false;
        close_encode(o);
    }
    return true;
}

int ws_outbox_flush(struct ws_outbox *o, struct ws_link *link, struct err *err)
{
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        if (!o->data && !encode_next(o))
            return 0;
        struct gather *f = &o->frame;
        int64_t n = ws_link_write(link, &f->iov[f->at], f->n - f->at, err);
        if (n < 0) {
            drop_frame(o);
            return (int)n;
        }
        gather_sent(f, (size_t)n);
        if (f->len)
            return 0;
        drop_frame(o);
    }
    return 1;
}
