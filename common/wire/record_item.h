// SPDX-License-Identifier: Apache-2.0
// A body in the queue of a record_writer. For record_writer.c and record_stream.c.
#pragma once

#include "common/wire/record_writer.h"

struct record_stream;

struct record_item {
    struct list link;      // in items, or in `followers` of the body it waits for
    struct list begun;     // in `stalled`, when a first record is out and more is to come
    struct list followers; // of the same call and direction, queued after this one began
    struct record_header h;
    size_t len, sent; // of the body
    size_t cost;      // what it counts in `bytes`
    size_t behind;    // this struct, bytes of the block
    size_t part, part_sent;
    size_t n_parts, size_parts; // size_parts: where they are a block of their own
    struct record_part *parts;  // behind this struct, or of its own
    char *copy;                 // behind this struct, where the body was copied
    bool open;                  // more is to come
    bool held;                  // by the peer
    bool parked;
    bool paid, owed;              // of what the writer charges: it had room for it, or had not
    struct record_stream *stream; // that knows it; NULL = none
};

// One of the same call, and in the same direction.
bool record_item_is_of(const struct record_item *it, uint32_t call, bool answers);
bool record_is_answer(unsigned type);
// Whether a record of it can go out now.
bool record_item_can_go(const struct record_item *it);

// Of a body in parts, or to be copied; in the queue. NULL: ERR_LIMIT.
struct record_item *record_item_push(struct record_writer *w, const struct record_header *h,
                                     const struct record_part *parts, size_t n, struct err *err);
struct record_item *record_item_copy(struct record_writer *w, const struct record_header *h, const void *body,
                                     size_t len, struct err *err);
// An empty one, for a record without a body, or for record_item_add(): there is always room for it.
struct record_item *record_item_begin(struct record_writer *w, const struct record_header *h);
int record_item_add(struct record_writer *w, struct record_item *it, const struct record_part *parts, size_t n,
                    struct err *err);
// Returns true if something of it was sent.
bool record_item_free(struct record_writer *w, struct record_item *it);
void record_item_unpark(struct record_writer *w, struct record_item *it); // if it can go on
