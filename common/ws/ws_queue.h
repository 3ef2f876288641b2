// SPDX-License-Identifier: Apache-2.0
// The data that one end of a websocket connection has not sent yet: records (combined into messages) or plain messages.
// A subprotocol uses one of the two; their relative order is undefined. No I/O.
#pragma once

#include "common/wire/frame.h"
#include "common/wire/record_writer.h"

// Flow control: the feeder of a queue stops reading its source above the high mark until `drained` is called.
#define WS_HIGH_MARK ((size_t)4 << 20)
#define WS_LOW_MARK ((size_t)1 << 20)
// The most that both ends read in a turn of data without a buffer of its own. The results go out before more is read.
// With a thousand short calls on the way, each process then has a part of them to work on. If all of them were read
// first, they would go round together, and all processes but one would wait. Smaller waves would cost more in system
// calls than they gain.
#define WS_WAVE ((size_t)16 << 10)

struct ws_queue {
    struct record_writer records;
    struct list messages;
    size_t message_bytes;
    struct quota *quota; // pays for messages; NULL = not counted
    bool high;           // has been above the high mark since it was last drained
};

struct ws_chunk { // one frame
    enum frame_opcode opcode;
    bool fin;
    size_t len;
};

void ws_queue_init(struct ws_queue *q, size_t max_bytes);
void ws_queue_done(struct ws_queue *q);
// This quota pays for later messages; a reference to it is taken.
void ws_queue_charge(struct ws_queue *q, struct quota *quota);
size_t ws_queue_bytes(const struct ws_queue *q);
// Copies the message. ERR_LIMIT if more than max_bytes would wait, or if the quota has no room. A short message fits in
// any case if nothing else waits.
int ws_queue_message(struct ws_queue *q, bool text, const void *data, size_t len, struct err *err);
// The same without a copy; *parts is empty on return. The quota pays for bytes that no other quota pays for.
int ws_queue_parts(struct ws_queue *q, bool text, struct parts *parts, struct err *err);
// Call it after records were queued through q->records, and after data was sent. True: the queue has just become
// drained.
bool ws_queue_drained(struct ws_queue *q);
// The payload of the next frame, of at most `size` bytes (4 KiB or more); false = nothing waits.
bool ws_queue_fill(struct ws_queue *q, char *out, size_t size, struct ws_chunk *ret);
// The same, but long segments are not copied into `out`. `g` must be empty, and gets the payload.
bool ws_queue_gather(struct ws_queue *q, char *out, size_t size, struct gather *g, struct ws_chunk *ret);
