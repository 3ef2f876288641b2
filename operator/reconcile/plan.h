// SPDX-License-Identifier: Apache-2.0
// A plan: the actions for one object, as data. A pure function makes it from a snapshot (group_reconcile.h), and
// operator/exec carries it out. The arena in which the plan was made owns all memory.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/workergroup.h"

enum action_kind {
    ACTION_DRY_RUN, // create `body` as a pod with dryRun=All, and remember the answer under `hash`; if `further`,
                    // remember only that the pod passed
    ACTION_CREATE_SERVICE, // `body`
    ACTION_CREATE_SLICE,   // `body`
    ACTION_PATCH_SLICE,    // `name`; `body` is a merge patch of the one that was seen
    ACTION_CREATE_POD,     // `body`; counts as `requests` on `node` from now on
    ACTION_DELETE_POD,     // `name` with the precondition `uid`; grace_s -1 = the pod's own grace period, 0 = by force
    ACTION_COMMAND,        // send a record of type `command` with `body` to the agent of pod `name` with `uid`
    ACTION_DELETE_OWNER,   // the object itself, if it has not changed: it still has `uid` and `resource_version`
    ACTION_STATUS,         // `body` is a merge patch for the status subresource
    ACTION_EVENT,          // `reason`, `note`, `warning`
};

// The first stage has what must happen before everything else, such as the status of a new attempt. Then come its
// consequences, then the Events about it.
enum { STAGE_FIRST, STAGE_SECOND, STAGE_THIRD };

struct action {
    enum action_kind kind;
    // Actions of one stage run at the same time. The next stage starts when all of them have succeeded. A plan that
    // begins a new attempt writes the status first, so that the next operator continues at the same step after a crash.
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

// The kinds of waits of a decision. Each wait has its own limit (wait.h).
enum wait_kind {
    WAIT_BIND,      // for kube-scheduler
    WAIT_PAUSE,     // before the next start after a failure
    WAIT_DEADLINE,  // activeDeadlineSeconds
    WAIT_TTL,       // ttlSecondsAfterFinished
    WAIT_ADDRESSES, // for pods that have no address yet
    WAIT_KILLED,    // for a kubelet to report why it killed a container
    WAIT_STATUS,    // for a status that is as new as the pods
    WAIT_KINDS
};

struct wait {
    int64_t token; // differs between one wait and the next; 0 = there is no wait
    int64_t since_ms;
};

struct line_note; // operator/placement/line.h

struct plan {
    struct action *actions; // sorted by stage
    size_t n, size;
    int64_t requeue_ms;     // look again after this time at the latest; -1 = only when something changes
    bool waits_for_room;    // look again when the cluster's epoch grows
    bool waits_for_port;    // look again when another user of the PlacementGroup has gone
    const char *master;     // as in struct gang_memory
    bool defers_status;     // the status has to be written soon, but other changes may come first
    bool gives_back;        // the gang is given back and tried again later (struct gang_memory)
    const char **contended; // nodes that did not take the pods planned for them, or that lost a GPU
    size_t n_contended;
    struct wait waits[WAIT_KINDS]; // as in struct gang_memory
    const struct line_note *line;  // news for the line about this gang; NULL = the gang does not wait
    struct arena *arena;
};

void plan_init(struct plan *p, struct arena *a);
struct action *plan_add(struct plan *p, enum action_kind kind, int stage); // valid until the next plan_add
void plan_requeue(struct plan *p, int64_t ms);                             // the earliest one wins
void plan_avoid(struct plan *p, const char *node); // the next plan avoids this node; the name is copied
// If the node of the pod is lost, the pod is deleted by force. Otherwise it is asked to go once, and then waited for.
void plan_delete_pod(struct plan *p, const struct pod *pod, bool lost, int stage);
// The note may come from another object: it is cut to the length of an Event, and copied.
void plan_add_event(struct plan *p, int stage, bool warning, const char *reason, const char *note);
// Writes the status of the object that was seen in this version (NULL = any version). If the object has changed since,
// the API server refuses the write. So a decision from an old view (say, of a new leader whose watch lags) cannot undo
// a newer decision, nor write about another object of the same name.
void plan_add_status(struct plan *p, int stage, const char *patch, const char *resource_version);
// A status has been wanted since wanted_ms (0 = from now on). It waits up to settle_ms for further changes. Returns
// true if it still waits.
bool plan_defers_status(struct plan *p, int64_t wanted_ms, int64_t settle_ms, int64_t now_ms);
// One line per action, for golden files and debug logs
const char *plan_describe(const struct plan *p, struct arena *a);
