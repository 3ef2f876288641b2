// SPDX-License-Identifier: Apache-2.0
// Long bodies between two processes of one host, by reference: the memory that one end of a connection has lent to its
// peer, and the memory that the peer has lent to it (docs/protocol.md, "Shared memory"). No I/O: the owner of the
// connection maps memory and sends records.
#pragma once

#include "common/wire/parts.h"
#include "common/wire/record.h"

#define SHARE_MIN ((size_t)256 << 10) // shorter parts are sent as they are

enum {
    SHARE_LENT_MAX = 64 << 10,                                             // ranges that the peer has not given back
    SHARE_AREAS_MAX = 4096,                                                // areas of the peer
    SHARE_DESCRIPTOR = 24,                                                 // body of a record with RECORD_SHARED
    SHARE_MEMORY = 16,                                                     // body of a MEMORY
    SHARE_ROOM = 2 * RECORD_HEADER_SIZE + SHARE_MEMORY + SHARE_DESCRIPTOR, // most bytes that share_write() writes
};

#define SHARE_TAKEN UINT32_MAX // number of an area in a MEMORY: the peer has mapped the memory that was offered

struct share_config {
    // Sends a record of the session. It may be called wherever a blob is released.
    void (*send)(void *ctx, enum record_type type, const char *body, size_t len);
    // Maps the peer's memory with this descriptor, and calls area_init(). NULL: this is not possible.
    struct area *(*open)(void *ctx, int fd, size_t size, struct err *err);
    void *ctx;
};

struct share_lent;

struct share {
    bool lends; // the peer can map offered memory; set by the owner, which may have asked the peer
    // private
    struct share_config config;
    bool on;
    struct share_lent *lent; // by number
    uint32_t n_lent, size_lent, free_lent;
    struct list offers; // areas that the peer knows
    struct share_borrowed *borrowed;
    size_t n_borrowed;
};

void share_init(struct share *s, const struct share_config *config);
// The connection has ended: lent memory is free. Borrowed memory stays mapped as long as it is in use. `s` may be all
// zero.
void share_done(struct share *s);
// Whether the peer still has memory of this area that was lent to it. `s` may be all zero.
bool share_has_lent(const struct share *s, const struct area *a);

// Tells the peer about memory that will be lent. The peer answers with SHARE_TAKEN.
void share_offer(struct share *s, struct area *a);
// Handles a MEMORY or RETURN from the peer. 1: the peer has taken the offered memory. Negative: the record is wrong,
// close.
int share_record(struct share *s, uint8_t type, const char *body, size_t len, struct err *err);
// The memory for which a record with RECORD_SHARED stands. ERR_PROTO.
int share_borrow(struct share *s, const char *descriptor, size_t len, struct blob **ret, struct err *err);

// For the writer: whether a part can go by reference, and the record for it, at most SHARE_ROOM bytes. `h` has no
// length. Returns the number of bytes.
bool share_takes(const struct share *s, const struct record_part *p);
size_t share_write(struct share *s, const struct record_header *h, const struct record_part *p, char *out);
