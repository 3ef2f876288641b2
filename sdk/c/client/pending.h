// SPDX-License-Identifier: Apache-2.0
// Calls without an answer, in entries that are reused, so that a call needs no allocation. The id of a call has the
// number of its entry and a growing number; its lower 32 bits are the id on the wire. A late answer to a finished call
// finds another id in the entry.
#pragma once

#include "common/base/buf.h"
#include "common/base/deadline.h"
#include "common/base/list.h"
#include "common/wire/blob.h"
#include "sdk/c/client/retry.h"

enum { PENDING_METHOD_MAX = 63, PENDING_GROUP_MAX = 127 };

struct pending {
    struct list link;         // urgent, waiting, or sent
    struct deadline deadline; // may be in none
    uint64_t id;              // 0 = a free entry
    uint32_t entry;           // private: its number, from 1
    struct uplink *sent;      // it was sent over this one; NULL = it was not, or is not any more
    bool lengthy;             // some of its arguments may still wait although it was sent
    bool rests;               // it waits until its deadline, then it is tried again
    bool lends;               // its arguments are the caller's, who gets them back with the answer
    bool urgent;              // it waits for the connection only
    bool refuse, quiet;
    bool keep, answered; // answered: only if its answer is kept
    bool watched;        // cadre_client_next() returns it
    uint8_t dispatch, execute;
    uint32_t rank;
    int64_t timeout_ms, attempt; // 0 = none
    int64_t created_ms;          // of the monotonic clock; set if it has a timeout
    struct retry *retry;         // owned; NULL = it is sent once
    struct blob *args;           // until it is sent, or for the next try
    char *more;                  // further members of the head, kept as long as `args`; NULL = none
    void (*done)(void *ctx, const cadre_client_answer *answer);
    void *ctx;
    cadre_client_json text;    // the kept answer: this ...
    struct blob *result;       // ... in this blob,
    cadre_client_error *fault; // or this, owned
    char method[PENDING_METHOD_MAX + 1];
    char group[PENDING_GROUP_MAX + 1]; // "" = the connection's
};

// Now, or in an earlier try.
static inline bool pending_may_have_run(const struct pending *p)
{
    return p->sent != NULL || (p->retry && p->retry->may_have_run);
}

struct pendings {
    struct pending **chunks;
    uint32_t n_chunks;
    struct list free; // longest unused first
    uint64_t last;
    uint32_t used;
};

void pendings_init(struct pendings *t);
void pendings_done(struct pendings *t);
// A call with an id, a link and nothing else. At most 65,535 may be taken.
struct pending *pendings_take(struct pendings *t);
void pendings_give(struct pendings *t, struct pending *p);               // must be in no list, and hold nothing
struct pending *pendings_find(const struct pendings *t, uint64_t id);    // NULL = it is over
struct pending *pendings_of_wire(const struct pendings *t, uint32_t id); // by the lower half of its id
bool pendings_knows(const struct pendings *t, uint64_t id);              // it is, or was, the id of a call
// The head of its CALL, with the time that is left of its timeout.
void pending_write_head(const struct pending *p, int64_t now, struct buf *out);
