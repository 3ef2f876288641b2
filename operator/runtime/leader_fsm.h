// SPDX-License-Identifier: Apache-2.0
// The rules of leader election. Pure: events go in, actions come out. The time of another holder's Lease begins when we
// see its record change. The time of our own Lease begins when we send the write that renews it. Clocks therefore need
// not agree. A holder that does not renew keeps the Lease for as long as its record says, but at most for
// LEADER_BELIEVED_MS or four of our own leases: somebody may have edited the record. If somebody deletes the record,
// the leader creates it again. Followers first wait until a leader that has not noticed the deletion would have lost
// its Lease.
//
//   FOLLOWING --the Lease was free or expired, and our write succeeded--> LEADING
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
    LEADER_GOT,      // the Lease was read
    LEADER_MISSING,  // there is no Lease (404)
    LEADER_WROTE,    // our create or update succeeded, and this is its answer
    LEADER_CONFLICT, // our create or update came too late (409)
    LEADER_FAILED,   // a read or a write failed in another way
};

enum leader_action {
    LEADER_DO_NOTHING, // until something happens, or until wait_ms have passed
    LEADER_DO_GET,
    LEADER_DO_CREATE, // leader_fsm_write() returns the content
    LEADER_DO_UPDATE,
};

struct leader_input {
    enum leader_event event;
    const struct lease *lease; // with LEADER_GOT and LEADER_WROTE
    int64_t mono_ms;
};

struct leader_output {
    enum leader_action action;
    int64_t wait_ms; // LEADER_TICK is due after this time; -1 = not before something happens
    bool elected, lost;
    bool holder_changed; // see leader_fsm.holder
    int64_t away_ms;     // the API server answers again after this time; 0 = no such news
    bool restored;       // the record is older than the one before: somebody has restored a backup of etcd
    bool disbelieved;    // leader_fsm.holder did not renew, and we take its Lease before its duration_ms are over
};

struct leader_fsm {
    struct leader_rules rules;
    struct rand rand;
    enum leader_state state;
    bool busy;          // a request is in progress
    bool reread;        // a conflict has led to a second read already
    int64_t failing_ms; // when the first of the last requests, which all failed, was sent; 0 = the last one did not
    int64_t sent_ms;    // when the last request was sent
    int64_t renewed_ms; // when the last successful write was sent
    int64_t next_ms;    // when to try again
    // The record as we read or wrote it last:
    int64_t observed_ms;                         // when we first saw this version; 0 and an empty version: never
    int64_t missing_ms;                          // with a holder and an empty version: since when the record is gone
    char version[64], holder[512], watches[256]; // watches "" = not known
    int64_t duration_ms, acquired_wall_ms;
    int32_t transitions;
};

void leader_fsm_init(struct leader_fsm *f, const struct leader_rules *rules, uint64_t seed); // identity is borrowed
struct leader_output leader_step(struct leader_fsm *f, const struct leader_input *in);
// Returns until when the leader may write its decisions, 0 = it does not lead. A process that was frozen may not have
// heard yet that its Lease has expired.
int64_t leader_fsm_writes_until_ms(const struct leader_fsm *f);
// Returns the encoded Lease to create or update now. Only an update has a resourceVersion.
const char *leader_fsm_write(const struct leader_fsm *f, const char *ns, const char *name, int64_t wall_ms, bool update,
                             struct arena *a);
// Stops for good. Returns true if there is a Lease to release. leader_fsm_write() then returns its content.
bool leader_fsm_resign(struct leader_fsm *f);
