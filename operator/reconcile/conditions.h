// SPDX-License-Identifier: Apache-2.0
// The conditions of a WorkerGroup or a PlacementGroup after a decision, and the write and the Events that bring the
// object there. No other module writes a condition.
#pragma once

#include "operator/api/condition.h"
#include "operator/api/object.h"
#include "operator/reconcile/plan.h"

enum { CONDITION_MESSAGE_MAX = 4096 }; // bytes; also of lastFailure

enum condition_kind { ACCEPTED, SCHEDULED, READY, SUCCEEDED, FAILED, SUSPENDED, GPU_LOST, CONDITION_KINDS };

struct conditions {
    // type NULL: this kind of object has no such condition, or never had a reason for it (GPU_LOST). A condition that
    // is not set keeps the generation that it was set for: it says nothing about a newer spec.
    struct condition now[CONDITION_KINDS];
    const struct condition *status; // as the object stands; borrowed
    size_t n_status;
    int64_t generation; // of the spec
};

// As the object stands. What was never set is Unknown, Pending; or neither ended nor suspended. `types`:
// NULL-terminated.
void conditions_init(struct conditions *c, const char *const *types, int64_t generation, const struct condition *status,
                     size_t n_status);
void conditions_set(struct conditions *c, enum condition_kind which, enum condition_status status, const char *reason,
                    const char *message);
// The condition speaks of the spec of this generation.
void conditions_date(struct conditions *c, enum condition_kind which, int64_t generation);
void conditions_accept(struct conditions *c);
void conditions_alive(struct conditions *c); // neither ended nor suspended
// The gang is not up, for the same reason in Scheduled and Ready.
void conditions_wait(struct conditions *c, const char *reason, const char *message);
const struct condition *conditions_old(const struct conditions *c, enum condition_kind which); // NULL if never set
bool conditions_was(const struct conditions *c, enum condition_kind which);                    // the status says True
// What a gang gave its pods up for says more than that they are still going, and does not change with each pod that
// goes: Ready says so already.
bool conditions_keep_reason(const struct conditions *c);

// How long a passing status waits: `first` of its life; `only_words` of a message are new; `moving` objects whose
// status waits. A write of a status costs the API server as much as the creation of several pods: when hundreds start
// at once, the passing states of each of them would hold up what all of them wait for.
int64_t conditions_settle_ms(bool first, bool only_words, int32_t moving);

// The rest of the object's status. `ctx` gives the owner's part of it for these conditions.
struct status_draft {
    const char *patch;      // NULL: it is what the object has
    bool urgent;            // worth a write of its own: a new attempt, say
    bool restarted;         // worth an Event
    const char *placements; // "replicas 0-3 on n1, ...", for an Event
    const char *slow;       // likewise: why ranks start without their template; NULL = they do not
    const char *code;       // likewise: whose code the processes run from now on; NULL = as before, or code of an image
};
struct status_writer {
    void (*draft)(void *ctx, struct condition *items, size_t n, struct status_draft *ret);
    void *ctx;
    const char *resource_version; // that the decision saw
    int64_t wanted_ms;            // struct gang_memory
    int32_t moving;               // struct group_view
    int64_t now_ms;
};
// Adds the write of the status and its Events to the plan, if anything differs. `at_once`: before everything else (a
// new attempt); otherwise passing states may wait a moment for what comes next, so that a gang that starts quickly
// costs one write, and new numbers in the message of one that waits are gathered for longer.
void conditions_commit(const struct conditions *c, const struct status_writer *w, bool at_once, struct arena *a,
                       struct plan *plan);
