// SPDX-License-Identifier: Apache-2.0
// Records in, websocket messages out; no I/O. When the socket becomes writable, everything in the queue leaves as one
// message: batching without timers. A long body is split into records, and later records go between them. Bodies begin
// in the order in which they were queued. Bodies of one call also end in that order.
#pragma once

#include "common/wire/gather.h"
#include "common/wire/record_queue.h"

#define RECORD_MESSAGE ((size_t)256 << 10) // a message is filled up to this size

struct share;

struct record_writer {
    struct record_queue queue;
    struct share *share; // set by the owner: parts that can go by reference do; NULL = none do
};

void record_writer_init(struct record_writer *w, size_t max_bytes);
void record_writer_done(struct record_writer *w);
// From now on, `quota` pays for queued bodies: for their bookkeeping and for copied bytes. The owner of a blob pays for
// the blob. Call it once; until then nobody pays. A body for which the quota has no room is queued, too. It counts as
// `uncharged` until it is out, and the owner of the quota makes the peer wait.
void record_writer_charge(struct record_writer *w, struct quota *quota);

// Queues a body made of the parts, one after the other; takes references. h->len and RECORD_MORE are ignored.
// ERR_LIMIT, and nothing is queued, if more than max_bytes would wait.
int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err);
// The same for a small body, which is copied.
int record_writer_copy(struct record_writer *w, const struct record_header *h, const void *body, size_t len,
                       struct err *err);
// Queues a record without a body, even if max_bytes wait already. For the few records that must not be lost: at most
// one for each body that was queued before.
void record_writer_insist(struct record_writer *w, const struct record_header *h);
// Drops the queued arguments (or answers) of a call. True: some bytes of them are out already, so the peer must be told
// by a CANCEL (or an ERROR for that rank).
bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers);

// The body of the CALL with this id, copied; NULL: it does not wait here, or a part of it is out.
struct blob *record_writer_body(const struct record_writer *w, uint32_t call);

// Holds a body that has begun, because the peer wants no more of it for now, or continues it. False: no such body has
// begun.
bool record_writer_hold(struct record_writer *w, uint32_t call, bool answers, bool hold);

// Takes out the next body as a whole, for an owner that does not send records. *ret must be empty. Only for a writer
// that fills no messages and has no streams. False: nothing waits.
bool record_writer_take(struct record_writer *w, struct record_header *ret_header, struct parts *ret);

// Fills `out` with as many records as fit; 0 = nothing waits. size: at least 4 KiB, usually RECORD_MESSAGE.
size_t record_writer_fill(struct record_writer *w, char *out, size_t size);
// The same message without a copy of long bytes: `g` contains the message, and `out` the short bytes in it.
size_t record_writer_gather(struct record_writer *w, char *out, size_t size, struct gather *g);
