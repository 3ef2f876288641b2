// SPDX-License-Identifier: Apache-2.0
// Bytes in, records out; no I/O. The bytes may be cut anywhere. A body that lies whole in the input is not copied.
// Strict: everything that the specification does not allow is ERR_PROTO, everything above a limit is ERR_LIMIT. Both
// are final.
#pragma once

#include "common/wire/blob.h"
#include "common/wire/record.h"

struct share;

struct record_reader_config {
    bool whole;          // true: a body comes in one piece. false: each record comes on its own, except after
                         // record_reader_collect()
    size_t max_body;     // most bytes of a body over all its records; 0 = 64 MiB
    unsigned max_open;   // most bodies unfinished at a time; 0 = 1024
    bool tail;           // the end of a collected CALL that lies in shared memory is not copied, but handed out as such
    struct share *share; // of the connection; NULL: records by reference are refused
    // Pays for the bytes that the reader keeps; may be NULL; must outlive the reader. If not `whole`, a single record
    // is handed out even if the quota has no room. Nobody pays for its blob then: an owner that keeps it must
    // blob_recharge() it.
    struct quota *quota;
};

struct record {
    struct record_header h; // of the last record, if the body came in several; RECORD_MORE only if not `whole`
    const char *body;       // valid until the next call on this reader
    size_t len;
    struct blob
        *blob; // contains the body, take a reference to keep it; NULL: the body lies in the input, copy it to keep it
    struct blob *tail; // follows `body`, if the end of the body was left in shared memory (config.tail); NULL: nothing
    // The next bytes of the body, if they lie in shared memory: to look at them only, because their owner may change
    // them. next_last: they end the body.
    const char *next;
    size_t next_len;
    bool next_last;
    size_t offset; // of this piece in its body; 0 = the body begins here
    bool dropped;  // a CANCEL: the arguments were being collected, so nobody has heard of the call
    bool over;     // the collected body is too long, or there is no room. Its bytes so far are gone: the rest comes in
                   // pieces
    // Bodies count up from 1 in the order in which they began, which is the order of calls. Small ones overtake long
    // ones: where the order matters, wait until seq < record_reader_unfinished().
    uint64_t seq;
};

struct record_open;

struct record_reader {
    struct record_reader_config config;
    char head[RECORD_HEADER_SIZE];
    size_t head_len; // bytes of a header that has come in part
    bool in_body;
    struct record now; // the record that is being read
    size_t got;        // bytes of its body so far
    struct blob *tail; // of the last record that was handed out
    struct blob *rest; // the part of a reference from rest_at on, which comes next; rest_last: it ends its body
    size_t rest_at, filled_at;
    bool rest_last;
    struct blob *filled; // contains the body, if it is collected or not in the input
    struct record_open *open;
    unsigned n_open, size_open;
    unsigned found; // index of the one that was found last
    unsigned count;
    uint64_t seq;
    int failed;
};

void record_reader_init(struct record_reader *r, const struct record_reader_config *config);
void record_reader_done(struct record_reader *r);

// 1: *ret is the next record. 0: everything was taken, more is needed. Negative: the peer is wrong, close.
int record_reader_next(struct record_reader *r, const char **data, size_t *len, struct record *ret, struct err *err);
// Records that have begun since the last call. Several of them may be handed out as one.
unsigned record_reader_count(struct record_reader *r);
// Returns a buffer for the next bytes, which saves a copy. The next call for this reader must be record_reader_next()
// with that buffer. NULL: no body is under way, or there is no room.
char *record_reader_buffer(struct record_reader *r, size_t *ret_room);
// `first` was handed out last, and begins a body. This body now comes in one piece after all, of at most `max` bytes.
// If `want` is not 0, only a first piece of `want` bytes or more is collected. False: there is no room, and the body
// continues in pieces.
bool record_reader_collect(struct record_reader *r, const struct record *first, size_t max, size_t want);
// False inside a record: no message may end there.
bool record_reader_at_boundary(const struct record_reader *r);
int record_reader_end(const struct record_reader *r, struct err *err); // a message ends: ERR_PROTO inside a record
// The smallest seq of a body that has begun, has not ended and comes in one piece; UINT64_MAX = none.
uint64_t record_reader_unfinished(const struct record_reader *r);
