// SPDX-License-Identifier: Apache-2.0
// The gangs that wait for room, in the order in which they get it: by the priority of their pods, then by age.
//
// A gang that does not fit does not block the gangs behind it, so no room stays idle. But small gangs behind it could
// then starve it. So when it has waited for LINE_PATIENCE_MS, or when LINE_PASSES gangs behind it have received the
// kind of room that it lacks, nodes are held for it: the nodes where it fits after the fewest pods leave
// (planner_target). No gang behind it is planned onto these nodes, until it fits or the hold ends, because the pods in
// its way may never leave. Then the same time passes without a hold. The next hold is twice as long. In the end a hold
// lasts longer than the pods in the way, and meanwhile other gangs still start.
//
// Only pods that Cadre plans can be made to wait. kube-scheduler places all other pods.
//
// Pure: no clock, no I/O. Holds are not stored: a new leader finds them again from the time that the gang has waited,
// which is in its condition Scheduled.
#pragma once

#include "operator/api/object.h"
#include "operator/api/resource.h"

enum {
    LINE_PATIENCE_MS = 5 * 60 * 1000,
    LINE_PASSES = 20,
    LINE_HOLD_MS = 5 * 60 * 1000, // the first hold; each one is twice as long as the one before
    LINE_DOUBLINGS = 8,           // the hold grows this often at most: then it lasts 21 hours
    LINE_HOLDERS = 4,             // nodes are held for this many gangs at once
};

struct line;

struct line *line_new(void);
void line_free(struct line *l); // NULL is fine

struct line_member {
    const char *uid, *ns, *name;
    enum kind kind;
    int32_t priority;
    int64_t created_ms;
};

// The line's answer to a gang that is planned, whether the gang waits already or not.
struct line_answer {
    const char *const *held; // nodes that are held for the gangs ahead of it
    size_t n_held;
    int64_t waits_since_ms;  // 0 = it does not wait yet
    bool holds;              // nodes are held for it already, or from now on
    const char *const *hold; // the nodes that are held for it
    size_t n_hold;
    int64_t look_again_ms; // time until any of that changes; -1 = only when something happens
};
void line_ask(const struct line *l, const struct line_member *m, int64_t now_ms, struct arena *a,
              struct line_answer *ret);

// The result of planning it.
enum line_outcome {
    LINE_WAITS, // it does not fit
    LINE_TAKES, // it gets room: it leaves the line, and counts as a pass for the gangs ahead that lack the same kind of
                // room
};
struct line_note {
    enum line_outcome outcome;
    struct line_member member;
    // With LINE_WAITS
    int64_t since_ms;        // when it began to wait; only used if it is new in the line
    int short_of;            // the resource that is short, -1 = not just one
    const char *const *hold; // nodes to hold for it
    size_t n_hold;
    // With LINE_TAKES
    const struct resources *requests; // of one of its bundles
};
// Both functions return true if nodes were held for it and now are not: the gangs behind it should look again.
bool line_tell(struct line *l, const struct line_note *note, int64_t now_ms);
bool line_leave(struct line *l, const char *uid); // it does not wait (any more)

// The gangs ahead of it that are short of the same resource, for example "WorkerGroup ml/big since
// 2026-01-31T12:00:00Z, PlacementGroup ml/gpus since ...; 3 more". NULL if there are none.
const char *line_ahead(const struct line *l, const struct line_member *m, int short_of, struct arena *a);

size_t line_length(const struct line *l);
// Gang i of those that wait. Borrowed; valid until the next change.
const struct line_member *line_at(const struct line *l, size_t i);
