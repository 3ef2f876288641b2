// SPDX-License-Identifier: Apache-2.0
// Long bodies between two processes of one host, by reference: what one connection has lent to its peer, and what the
// peer has lent to it (docs/protocol.md, "Shared memory"). No I/O: the owner of the connection maps memory and sends
// records.
#pragma once

#include "common/wire/parts.h"
#include "common/wire/record.h"

#define SHARE_MIN ((size_t)256 << 10) // what is shorter is sent as it is

enum {
    SHARE_LENT_MAX = 64 << 10,                                             // stretches that the peer has not given back
    SHARE_AREAS_MAX = 4096,                                                // of the peer
    SHARE_DESCRIPTOR = 24,                                                 // body of a record with RECORD_SHARED
    SHARE_MEMORY = 16,                                                     // body of a MEMORY
    SHARE_ROOM = 2 * RECORD_HEADER_SIZE + SHARE_MEMORY + SHARE_DESCRIPTOR, // of what share_write() writes
};

#define SHARE_TAKEN UINT32_MAX // number of an area in a MEMORY: the peer has mapped what it was told of

struct share_config {
    // A record of the session. May be called by whatever lets go of a blob.
    void (*send)(void *ctx, enum record_type type, const char *body, size_t len);
    // Maps what the peer has under this descriptor: area_init() was done. NULL: it cannot be.
    struct area *(*open)(void *ctx, int fd, size_t size, struct err *err);
    void *ctx;
};

struct share_lent;

struct share {
    bool lends; // the peer can map what it is told of: set by the owner, who may have asked
    // private
    struct share_config config;
    bool on;
    struct share_lent *lent; // by number
    uint32_t n_lent, size_lent, free_lent;
    struct list told; // areas that the peer knows
    struct share_borrowed *borrowed;
    size_t n_borrowed;
};

void share_init(struct share *s, const struct share_config *config);
// The connection has ended: what was lent is free, what was borrowed stays mapped as long as somebody needs it. Also of
// one that is all zero.
void share_done(struct share *s);
// Whether the peer has not given back all of it that it was lent. Also of one that is all zero.
bool share_has_lent(const struct share *s, const struct area *a);

// Tells the peer of memory that is going to be lent, for it to say SHARE_TAKEN.
void share_offer(struct share *s, struct area *a);
// MEMORY or RETURN from the peer. 1: it has taken what was offered; negative: it is wrong, close.
int share_record(struct share *s, uint8_t type, const char *body, size_t len, struct err *err);
// What a record with RECORD_SHARED stands for. ERR_PROTO.
int share_borrow(struct share *s, const char *descriptor, size_t len, struct blob **ret, struct err *err);

// For the writer: whether this can go by reference, and the record for it, of SHARE_ROOM bytes at most. `h` without
// length; returns what was written.
bool share_takes(const struct share *s, const struct record_part *p);
size_t share_write(struct share *s, const struct record_header *h, const struct record_part *p, char *out);
