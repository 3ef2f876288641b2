// SPDX-License-Identifier: Apache-2.0
// What one end of a websocket connection still has to send: records (combined into messages) or plain messages. A
// subprotocol uses one of the two; their relative order is undefined. No I/O.
#pragma once

#include "common/wire/frame.h"
#include "common/wire/record_writer.h"

// Flow control: the feeder of a queue stops reading its source above the high mark until `drained` is called.
#define WS_HIGH_MARK ((size_t)4 << 20)
#define WS_LOW_MARK ((size_t)1 << 20)
// Of what has no place of its own both ends read this much a turn, and what came of it goes out before they read more:
// of a thousand short calls on the way each process then has a part to work on. Where all was read first they went
// round as one, and all but one process waited. Smaller ones cost more system calls a call than they gain.
#define WS_WAVE ((size_t)16 << 10)

struct ws_queue {
    struct record_writer records;
    struct list messages;
    size_t message_bytes;
    struct quota *quota; // pays for messages; NULL = nobody counts
    bool high;           // has been above the high mark since it was last drained
};

struct ws_chunk { // one frame
    enum frame_opcode opcode;
    bool fin;
    size_t len;
};

void ws_queue_init(struct ws_queue *q, size_t max_bytes);
void ws_queue_done(struct ws_queue *q);
// Messages that come from now on are paid for by this quota; a reference to it is taken.
void ws_queue_charge(struct ws_queue *q, struct quota *quota);
size_t ws_queue_bytes(const struct ws_queue *q);
// Copies; ERR_LIMIT over max_bytes, or where the quota has no room. A short one that is alone always has.
int ws_queue_message(struct ws_queue *q, bool text, const void *data, size_t len, struct err *err);
// The same without a copy; *parts is empty on return. The quota pays for what no other one does.
int ws_queue_parts(struct ws_queue *q, bool text, struct parts *parts, struct err *err);
// After records were queued, through q->records, and after anything was sent. True: it has become drained just now.
bool ws_queue_drained(struct ws_queue *q);
// The payload of the next frame, of at most `size` bytes (4 KiB or more); false = nothing waits.
bool ws_queue_fill(struct ws_queue *q, char *out, size_t size, struct ws_chunk *ret);
// The same; long stretches are not copied into `out`. `g`, an empty one, is the payload.
bool ws_queue_gather(struct ws_queue *q, char *out, size_t size, struct gather *g, struct ws_chunk *ret);
