// SPDX-License-Identifier: Apache-2.0
// The rules of leader election. Pure: events go in, actions come out. A holder's Lease is measured from the moment when
// we saw its record change, our own from the moment when we sent the renewing write. Clocks therefore need not agree. A
// holder that does not renew keeps the Lease for as long as its record says, but at most for LEADER_BELIEVED_MS or four
// of our own leases: somebody may have edited the record. If somebody deletes the record, the leader creates it again.
// Followers first wait until a leader that has not noticed yet would have lost its Lease.
//
//   FOLLOWING --the lease was free or expired, and our write succeeded--> LEADING
//   LEADING   --no write succeeded for renew_deadline_ms, or someone else holds it--> FOLLOWING
//   any       --leader_fsm_resign()--> RESIGNED (for good)
#pragma once

#include "common/base/rand.h"
#include "operator/api/lease.h"

enum leader_state { LEADER_FOLLOWING, LEADER_LEADING, LEADER_RESIGNED };
enum { LEADER_BELIEVED_MS = 60 * 1000, LEADER_RETRY_SOON_MS = 1000 };

struct leader_rules {
    const char *identity; // not empty
    int64_t lease_ms, renew_deadline_ms, retry_ms;
    const char *watches; // the namespaces that this installation acts on: one, or "*"
};

enum leader_event {
    LEADER_TICK,     // time passed
    LEADER_GOT,      // the lease was read
    LEADER_MISSING,  // there is none (404)
    LEADER_WROTE,    // our create or update succeeded, and this is the answer
    LEADER_CONFLICT, // our create or update came too late (409)
    LEADER_FAILED,   // anything else went wrong with a read or a write
};

enum leader_action {
    LEADER_DO_NOTHING, // until something happens or wait_ms have passed
    LEADER_DO_GET,
    LEADER_DO_CREATE, // leader_fsm_write() has the content
    LEADER_DO_UPDATE,
};

struct leader_input {
    enum leader_event event;
    const struct lease *lease; // GOT, WROTE
    int64_t mono_ms, wall_ms;
};

struct leader_output {
    enum leader_action action;
    int64_t wait_ms; // TICK is due then; -1 = not before something happens
    bool elected, lost;
    bool holder_changed; // see leader_fsm.holder
    bool recovered;      // the API server answers again
    bool disbelieved;    // leader_fsm.holder has not renewed, and its lease is taken before its duration_ms are over
};

struct leader_fsm {
    struct leader_rules rules;
    struct rand rand;
    enum leader_state state;
    bool busy;          // a request is on its way
    bool reread;        // a conflict was answered by a second read already
    bool failing;       // the last request was not answered
    int64_t sent_ms;    // when it was sent
    int64_t renewed_ms; // when the last write that succeeded was sent
    int64_t next_ms;    // when to try again
    // The record as last read or written:
    int64_t observed_ms;                         // when it was first seen like this; 0 with an empty version: never
    int64_t missing_ms;                          // with a holder and an empty version: since when it is gone
    char version[64], holder[512], watches[256]; // watches "" = not said
    int64_t duration_ms, acquired_wall_ms;
    int32_t transitions;
};

void leader_fsm_init(struct leader_fsm *f, const struct leader_rules *rules, uint64_t seed); // identity is borrowed
struct leader_output leader_step(struct leader_fsm *f, const struct leader_input *in);
// Until when what a leader decides may be written, 0 = it does not lead: a process that stood still may not have heard
// yet that its lease is over.
int64_t leader_fsm_writes_until_ms(const struct leader_fsm *f);
// The Lease to create or update now, encoded; resourceVersion only in an update.
const char *leader_fsm_write(const struct leader_fsm *f, const char *ns, const char *name, int64_t wall_ms, bool update,
                             struct arena *a);
// Stops for good; true if there is a lease to give back, which leader_fsm_write() then writes.
bool leader_fsm_resign(struct leader_fsm *f);
