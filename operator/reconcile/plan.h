// SPDX-License-Identifier: Apache-2.0
// What to do for one object, as data. A pure function makes a plan from a snapshot (group_reconcile.h), and
// operator/exec carries it out. The arena that the plan was made in owns all memory.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/workergroup.h"

enum action_kind {
    ACTION_DRY_RUN,        // create `body` as a pod with dryRun=All; remember what comes back under `hash`, or of a
                           // `further` one only that it passes
    ACTION_CREATE_SERVICE, // `body`
    ACTION_CREATE_SLICE,   // `body`
    ACTION_PATCH_SLICE,    // `name`; `body` is a merge patch of the one that was seen
    ACTION_CREATE_POD,     // `body`; counts as `requests` on `node` from now on
    ACTION_DELETE_POD,     // `name` with precondition `uid`; grace_s -1 = the pod's own, 0 = by force
    ACTION_COMMAND,        // tell the agent of pod `name` with `uid`: a record of type `command` with `body`
    ACTION_DELETE_OWNER,   // the object itself, if it still is as it was seen: `uid`, `resource_version`
    ACTION_STATUS,         // `body` is a merge patch for the status subresource
    ACTION_EVENT,          // `reason`, `note`, `warning`
};

// A status or the retreat from one comes first, then what follows from it, then the news of it.
enum { STAGE_FIRST, STAGE_SECOND, STAGE_THIRD };

struct action {
    enum action_kind kind;
    // Actions of one stage run at once; the next stage starts when all of them have succeeded. A plan that begins a new
    // attempt writes the status first, so that a crash in between is picked up where it happened.
    int stage;
    const char *name, *body, *uid, *resource_version;
    uint8_t command; // enum record_type of docs/protocol.md
    int32_t attempt; // of the command
    int64_t grace_s;
    const char *node;
    const struct resources *requests;
    uint64_t hash;
    bool further;
    bool warning;
    const char *reason, *note;
};

// What a decision waits for, each with its own patience: patience.h.
enum patience_kind {
    PATIENCE_BIND,      // for kube-scheduler
    PATIENCE_PAUSE,     // before the next start after a failure
    PATIENCE_DEADLINE,  // activeDeadlineSeconds
    PATIENCE_TTL,       // ttlSecondsAfterFinished
    PATIENCE_ADDRESSES, // for pods that have none yet
    PATIENCE_KILLED,    // for a kubelet to say why it has killed a container
    PATIENCE_KINDS
};

struct patience {
    int64_t token; // tells one wait from the next; 0 = there is none
    int64_t since_ms;
};

struct line_note; // operator/placement/line.h

struct plan {
    struct action *actions; // sorted by stage
    size_t n, size;
    int64_t requeue_ms;     // look again after so long at the latest; -1 = only when something changes
    bool waits_for_room;    // look again when the cluster's epoch grows
    bool waits_for_port;    // look again when a neighbour has gone
    const char *master;     // struct gang_memory
    bool defers_status;     // a status is due soon, but what is going on may settle first
    bool rolls_back;        // the gang is given back and tried again later: see struct gang_memory
    const char **contended; // nodes that did not take what was planned for them, or that lost a GPU
    size_t n_contended;
    struct patience waits[PATIENCE_KINDS]; // struct gang_memory
    const struct line_note *line;          // what those that wait for room learn of this one; NULL = it does not wait
    struct arena *arena;
};

void plan_init(struct plan *p, struct arena *a);
struct action *plan_add(struct plan *p, enum action_kind kind, int stage); // valid until the next plan_add
void plan_requeue(struct plan *p, int64_t ms);                             // the earliest one wins
void plan_avoid(struct plan *p, const char *node);                         // copies the name
// A pod of a lost node goes by force; of another one, once it was asked to go, it is waited for.
void plan_delete_pod(struct plan *p, const struct pod *pod, bool lost, int stage);
// A note may be another object's words: it is cut to what an Event takes, and copied.
void plan_add_event(struct plan *p, int stage, bool warning, const char *reason, const char *note);
// The status of the object as it was seen in this version (NULL = any): refused by the API server if the object has
// changed since. A decision from an old view (of a new leader whose watch lags, say) must not undo a newer one, nor
// speak of another object of the same name.
void plan_add_status(struct plan *p, int stage, const char *patch, const char *resource_version);
// A status that is wanted since wanted_ms (0 = from now on) waits until settle_ms have passed for what comes next: true
// if it waits on.
bool plan_defers_status(struct plan *p, int64_t wanted_ms, int64_t settle_ms, int64_t now_ms);
// One line an action, for golden files and debug logs.
const char *plan_describe(const struct plan *p, struct arena *a);
