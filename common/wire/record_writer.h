// SPDX-License-Identifier: Apache-2.0
// Records in, websocket messages out; no I/O. Whatever is queued when the socket turns writable goes out as one
// message: batching without timers. A long body is cut into records, and what waits behind it goes between them. Bodies
// begin in the order in which they were queued; those of one call also end in that order.
#ifndef CADRE_WIRE_RECORD_WRITER_H
#define CADRE_WIRE_RECORD_WRITER_H

#include "common/base/list.h"
#include "common/wire/gather.h"
#include "common/wire/record.h"

#define RECORD_MESSAGE ((size_t)256 << 10) // what a message is filled up to

struct record_part { // a stretch of a blob
    struct blob *blob;
    size_t offset, len;
};

struct record_writer {
    struct list items;   // next first; what was begun goes to the end after each record
    struct list stalled; // begun bodies, for finding those that followers of their call must wait for
    size_t n_items;
    size_t bytes; // that wait, headers and bookkeeping included
    size_t max_bytes;
};

void record_writer_init(struct record_writer *w, size_t max_bytes);
void record_writer_done(struct record_writer *w);

// Queues a body made of the parts, one after the other; takes references. h->len and RECORD_MORE are not looked at.
// ERR_LIMIT, and nothing queued, when max_bytes would wait.
int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err);
// The same for a small body, which is copied.
int record_writer_copy(struct record_writer *w, const struct record_header *h, const void *body, size_t len,
                       struct err *err);
// Forgets what is queued of a call's arguments (or its answers). True: something of it is out already, so that the peer
// has to be told by a CANCEL (or an ERROR for that rank).
bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers);

// Fills `out` with as many records as fit; 0 = nothing waits. size: at least 4 KiB, usually RECORD_MESSAGE.
size_t record_writer_fill(struct record_writer *w, char *out, size_t size);
// The same message without a copy of what is long: it is what `g` holds, in which `out` is the memory of the rest.
size_t record_writer_gather(struct record_writer *w, char *out, size_t size, struct gather *g);

#endif
