// SPDX-License-Identifier: Apache-2.0
// Bodies that wait to be sent as records, in the order in which they begin, with their cost and the quota that pays for
// it. record_writer.h makes messages from the queue. record_stream.h fills one body step by step.
#pragma once

#include "common/base/list.h"
#include "common/wire/parts.h"
#include "common/wire/quota.h"
#include "common/wire/record.h"

extern const size_t record_item_cost; // bytes of bookkeeping for each body that is queued

struct record_queue {
    struct list items;   // next first; a body that has begun moves to the end after each record
    struct list begun;   // begun bodies, for finding those that followers of their call must wait for
    struct list parked;  // bodies that cannot continue now: more is to come, or the peer wants no more for now
    struct quota *quota; // see record_writer_charge()
    size_t credit;       // bytes that are already charged to it for the next body
    size_t uncharged;    // bytes that it had no room for
    size_t n_items;
    size_t bytes; // of waiting bodies, with bookkeeping; without shared memory, for which its owner pays
    size_t max_bytes;
};

struct record_item {
    struct list link;      // in items, or in `followers` of the body it waits for
    struct list begun;     // in `begun` of the queue, when a first record is out and more is to come
    struct list followers; // of the same call and direction, queued after this one began
    struct record_header h;
    size_t len, sent; // of the body
    size_t cost;      // its part of `bytes` in the queue
    size_t behind;    // this struct, bytes of the block
    size_t part, part_sent;
    size_t n_parts, size_parts; // size_parts: of the block for the parts, 0 if they are after this struct
    struct record_part *parts;  // after this struct, or in a block
    char *copy;                 // after this struct, if the body was copied
    bool open;                  // more is to come
    bool held;                  // by the peer
    bool parked;
    bool paid, owed;             // the quota had room for its cost, or not; both false if nothing was charged
    struct record_item **stream; // the stream's pointer to it, NULL = none; set to NULL when the item is freed
};

void record_queue_init(struct record_queue *q, size_t max_bytes);
void record_queue_done(struct record_queue *q);                      // frees the waiting bodies
static inline size_t record_queue_room(const struct record_queue *q) // bytes until max_bytes are reached
{
    return q->max_bytes - (q->bytes < q->max_bytes ? q->bytes : q->max_bytes);
}
size_t record_parts_cost(const struct record_part *parts, size_t n); // cost of a body with these parts

// One of the same call, and in the same direction.
bool record_item_is_of(const struct record_item *it, uint32_t call, bool answers);
// Whether a record of it can go out now.
bool record_item_can_go(const struct record_item *it);

// Queues a body in parts, or a copy of a body. NULL: ERR_LIMIT.
struct record_item *record_item_push(struct record_queue *q, const struct record_header *h,
                                     const struct record_part *parts, size_t n, struct err *err);
struct record_item *record_item_copy(struct record_queue *q, const struct record_header *h, const void *body,
                                     size_t len, struct err *err);
// Queues an empty one, for a record without a body, or for record_item_add(). There is always room for it.
struct record_item *record_item_begin(struct record_queue *q, const struct record_header *h);
int record_item_add(struct record_queue *q, struct record_item *it, const struct record_part *parts, size_t n,
                    struct err *err);
// Returns true if something of it was sent.
bool record_item_free(struct record_queue *q, struct record_item *it);
// Call it when parts are out. If no part is left, a large block for them is freed.
void record_item_shrink(struct record_item *it);
void record_item_park(struct record_queue *q, struct record_item *it);
void record_item_unpark(struct record_queue *q, struct record_item *it); // if it can go on
