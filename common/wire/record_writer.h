// SPDX-License-Identifier: Apache-2.0
// Records in, websocket messages out; no I/O. When the socket becomes writable, everything in the queue leaves as one
// message: batching without timers. A long body is split into records, and later records go between them. Bodies begin
// in the order in which they were queued. Bodies of one call also end in that order.
#pragma once

#include "common/wire/gather.h"
#include "common/wire/record_queue.h"

#define RECORD_MESSAGE ((size_t)256 << 10) // what a message is filled up to

struct share;

struct record_writer {
    struct record_queue queue;
    struct share *share; // set by the owner: what can go by reference does so; NULL = nothing
};

void record_writer_init(struct record_writer *w, size_t max_bytes);
void record_writer_done(struct record_writer *w);
// Who pays for what is queued from now on: the bookkeeping and what is copied, because bodies in blobs are their
// owner's. Once; until then nobody pays. What the quota has no room for is queued all the same, and counts as
// `uncharged` until it is out: who set the quota makes the peer wait.
void record_writer_charge(struct record_writer *w, struct quota *quota);

// Queues a body made of the parts, one after the other; takes references. h->len and RECORD_MORE are not looked at.
// ERR_LIMIT, and nothing queued, when max_bytes would wait.
int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err);
// The same for a small body, which is copied.
int record_writer_copy(struct record_writer *w, const struct record_header *h, const void *body, size_t len,
                       struct err *err);
// Queues a record without a body, also where max_bytes wait already: for the few that must not get lost, at most one
// for each body that was queued before.
void record_writer_insist(struct record_writer *w, const struct record_header *h);
// Forgets what is queued of a call's arguments (or its answers). True: something of it is out already, so that the peer
// has to be told by a CANCEL (or an ERROR for that rank).
bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers);

// The body of the CALL with this id, copied; NULL: it does not wait here, or something of it is out.
struct blob *record_writer_body(const struct record_writer *w, uint32_t call);

// The peer wants no more of this body for now (or again): only of one that has begun. False: there is none.
bool record_writer_hold(struct record_writer *w, uint32_t call, bool answers, bool hold);

// Takes the next body out, whole, for an owner who does not send records: *ret, which has to be empty. Only where
// nothing is filled, and there are no streams. False: nothing waits.
bool record_writer_take(struct record_writer *w, struct record_header *ret_header, struct parts *ret);

// Fills `out` with as many records as fit; 0 = nothing waits. size: at least 4 KiB, usually RECORD_MESSAGE.
size_t record_writer_fill(struct record_writer *w, char *out, size_t size);
// The same message without a copy of what is long: it is what `g` holds, in which `out` is the memory of the rest.
size_t record_writer_gather(struct record_writer *w, char *out, size_t size, struct gather *g);
