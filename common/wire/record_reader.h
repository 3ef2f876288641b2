// SPDX-License-Identifier: Apache-2.0
// Bytes in, records out; no I/O. The bytes may be cut anywhere. A body that lies whole in the input is not copied.
// Strict: everything that the specification does not allow is ERR_PROTO, everything above a limit is ERR_LIMIT. Both
// are final.
#pragma once

#include "common/wire/blob.h"
#include "common/wire/record.h"

struct share;

struct record_reader_config {
    bool whole;          // true: bodies in one piece. false: every record as it comes, but for record_reader_collect()
    size_t max_body;     // most bytes of a body over all its records; 0 = 64 MiB
    unsigned max_open;   // most bodies unfinished at a time; 0 = 1024
    bool tail;           // the end of a collected CALL that lies in shared memory is not copied, but handed out as such
    struct share *share; // of the connection; NULL: records by reference are refused
    // Pays for what is kept; may be NULL; must outlive the reader. Not `whole`: a single record is handed out even
    // where there is no room left for it, in a blob that nobody pays for: who keeps it must blob_recharge() it.
    struct quota *quota;
};

struct record {
    struct record_header h; // of the last record, where the body came in several; RECORD_MORE only if not `whole`
    const char *body;       // valid until the next call on this reader
    size_t len;
    struct blob
        *blob; // holds the body, take a reference to keep it; NULL: the body lies in the input, copy it to keep it
    struct blob *tail; // what follows `body` of it, where that was left in shared memory (config.tail); NULL: nothing
    // What lies in shared memory and comes next of the body, to be looked at; its owner may change it. next_last: it is
    // all that is left.
    const char *next;
    size_t next_len;
    bool next_last;
    size_t offset; // of this piece in its body; 0 = the body begins here
    bool dropped;  // a CANCEL: what it ended was being collected, so that nobody has heard of it
    bool over;     // it was collected, is longer than it may be, and what there was is gone: pieces come again
    // Bodies count up from 1 in the order in which they began, which is the order of calls. Small ones overtake long
    // ones: where the order matters, wait until seq < record_reader_unfinished().
    uint64_t seq;
};

struct record_open;

struct record_reader {
    struct record_reader_config config;
    char head[RECORD_HEADER_SIZE];
    size_t head_len; // what has come of a header that was cut
    bool in_body;
    struct record now; // the record that is being read
    size_t got;        // bytes of its body so far, where it is collected
    struct blob *tail; // of the last record that was handed out
    struct blob *rest; // of a reference, from rest_at on, that comes next; rest_last: it is the end of its body
    size_t rest_at, filled_at;
    bool rest_last;
    struct blob *filled; // where it is collected, or what the last record handed out lies in
    struct record_open *open;
    unsigned n_open, size_open;
    unsigned found; // which of them was found last
    unsigned count;
    uint64_t seq;
    int failed;
};

void record_reader_init(struct record_reader *r, const struct record_reader_config *config);
void record_reader_done(struct record_reader *r);

// 1: *ret is the next record. 0: everything was taken, more is needed. Negative: the peer is wrong, close.
int record_reader_next(struct record_reader *r, const char **data, size_t *len, struct record *ret, struct err *err);
// Records that have begun since it was asked last: many of them may become one that is handed out.
unsigned record_reader_count(struct record_reader *r);
// Where the bytes that come next may be put to save a copy: then that place is what record_reader_next() gets. Until
// then the reader must not be used otherwise. NULL: no body is on its way, or there is no room.
char *record_reader_place(struct record_reader *r, size_t *ret_room);
// The body that begins with this piece, the one that was handed out last, shall come in one piece after all, of at
// most `max` bytes; or, where `want` is not 0, with a first piece of `want` bytes or more. False: there is no room, and
// it goes on in pieces.
bool record_reader_collect(struct record_reader *r, const struct record *first, size_t max, size_t want);
// False inside a record: no message may end there.
bool record_reader_at_boundary(const struct record_reader *r);
// The smallest seq of a body that has begun, has not ended and comes in one piece; UINT64_MAX = none.
uint64_t record_reader_unfinished(const struct record_reader *r);
