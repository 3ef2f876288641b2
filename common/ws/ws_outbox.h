// SPDX-License-Identifier: Apache-2.0
// The sending half of a client's connection: makes masked frames of control frames and of the queue, and writes of
// frames.
#pragma once

#include "common/ws/ws_link.h"
#include "common/ws/ws_mask.h"
#include "common/ws/ws_queue.h"

enum ws_outbox_close { OUTBOX_OPEN, OUTBOX_CLOSE_AFTER_QUEUE, OUTBOX_CLOSE_NEXT, OUTBOX_CLOSED };

struct ws_outbox {
    struct ws_queue queue;
    bool zero_mask; // of every frame
    bool gathers;   // long segments are written from their place: neither masked nor encrypted
    bool waits;     // frames wait: the handshake is under way
    bool ping_due;
    enum ws_outbox_close close; // OUTBOX_CLOSED: the close frame was made, no frame follows
    // private
    struct ws_mask mask;
    char *data;          // of a frame on its way, or NULL
    struct gather frame; // the rest of it, to be written
    bool pong_due;
    char pong[FRAME_CONTROL_MAX];
    size_t pong_len;
    char reason[FRAME_CONTROL_MAX]; // payload of the close frame
    size_t reason_len;
};

void ws_outbox_init(struct ws_outbox *o, size_t max_queue);
void ws_outbox_done(struct ws_outbox *o);
void ws_outbox_raw(struct ws_outbox *o, char *data, size_t len); // takes data: the handshake, before anything else
void ws_outbox_pong(struct ws_outbox *o, const char *data, size_t len);
// Queues the close frame, after the queue (flush) or instead of it. Without flush, waiting data stays, so the owner can
// ask what was not sent. Does nothing if the close frame was made already.
void ws_outbox_close(struct ws_outbox *o, unsigned code, const char *reason, bool flush);
bool ws_outbox_pending(const struct ws_outbox *o); // a frame is not out entirely
// Writes as much as the socket takes in a turn's share. 1 = more could go, 0 = all is out or the socket is full,
// negative = the connection is broken.
int ws_outbox_flush(struct ws_outbox *o, struct ws_link *link, struct err *err);
