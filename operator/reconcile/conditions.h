// SPDX-License-Identifier: Apache-2.0
// The conditions of a WorkerGroup or a PlacementGroup after a decision, and the write and the Events that show them. No
// other module writes a condition.
#pragma once

#include "operator/api/condition.h"
#include "operator/api/object.h"
#include "operator/reconcile/plan.h"

enum { CONDITION_MESSAGE_MAX = 4096 }; // bytes; also the limit of lastFailure

enum condition_kind { ACCEPTED, SCHEDULED, READY, SUCCEEDED, FAILED, SUSPENDED, GPU_LOST, CONDITION_KINDS };

struct conditions {
    // If the type is NULL, this kind of object has no such condition, or there was never a reason for it (GPU_LOST). A
    // condition that is not set keeps its old generation, because it says nothing about a newer spec.
    struct condition now[CONDITION_KINDS];
    const struct condition *status; // the conditions in the object's status; borrowed
    size_t n_status;
    int64_t generation; // of the spec
};

// Starts from the status of the object. A condition that was never set becomes Unknown with reason Pending. Succeeded,
// Failed and Suspended become False instead. `types` is NULL-terminated.
void conditions_init(struct conditions *c, const char *const *types, int64_t generation, const struct condition *status,
                     size_t n_status);
void conditions_set(struct conditions *c, enum condition_kind which, enum condition_status status, const char *reason,
                    const char *message);
// From now on, the condition describes the spec with this generation.
void conditions_date(struct conditions *c, enum condition_kind which, int64_t generation);
void conditions_accept(struct conditions *c);
void conditions_alive(struct conditions *c); // sets Succeeded, Failed and Suspended to False
// Sets Scheduled and Ready to False with the same reason: the gang is not up.
void conditions_wait(struct conditions *c, const char *reason, const char *message);
const struct condition *conditions_old(const struct conditions *c, enum condition_kind which); // NULL if never set
bool conditions_was(const struct conditions *c, enum condition_kind which);                    // the status says True
// The status says True or False about the present spec.
bool conditions_judged(const struct conditions *c, enum condition_kind which);
// Returns true if Ready already says why the gang gave up its pods. That reason says more than a reason about pods that
// are still going, and it does not change with each pod that goes.
bool conditions_keep_reason(const struct conditions *c);

// The time that a passing status waits. `first`: it is the first status of the object. `only_words`: only the text of a
// message is new. `waiting_statuses`: the number of objects whose status waits. The write of a status costs the API
// server as much as the creation of several pods. When hundreds of groups start at once, the writes of their passing
// states would delay all of them.
int64_t conditions_settle_ms(bool first, bool only_words, int32_t waiting_statuses);

// The owner's part of the status, which status_writer.draft makes for these conditions.
struct status_draft {
    const char *patch;      // NULL: the object already has this status
    bool urgent;            // deserves its own write, for example a new attempt
    bool restarted;         // deserves an Event
    const char *placements; // "replicas 0-3 on n1, ...", for an Event
    const char *slow;       // for an Event: why ranks start without their template; NULL = they start with it
    const char *code;       // for an Event: whose code the processes run from now on; NULL = no other code than before
};
struct status_writer {
    void (*draft)(void *ctx, struct condition *items, size_t n, struct status_draft *ret);
    void *ctx;
    const char *resource_version; // of the object that the decision saw
    int64_t wanted_ms;            // as in struct gang_memory
    int32_t waiting_statuses;     // as in struct gang_view
    int64_t now_ms;
};
// Adds the write of the status and its Events to the plan if anything differs. `at_once`: the write comes before
// everything else (a new attempt). Otherwise passing states may wait for the next change, so that a gang that starts
// quickly costs one write. New numbers in the message of a waiting gang wait longer.
void conditions_commit(const struct conditions *c, const struct status_writer *w, bool at_once, struct arena *a,
                       struct plan *plan);
