// SPDX-License-Identifier: Apache-2.0
// What a controller remembers about each of its objects, and when and how it decides about the object again: snapshot,
// plan, execution. For WorkerGroups and PlacementGroups. On the loop's thread.
#pragma once

#include "common/base/map.h"
#include "common/base/rand.h"
#include "operator/exec/decision_time.h"
#include "operator/exec/executor.h"
#include "operator/exec/observations.h"
#include "operator/exec/waiting.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/territory.h"

struct controller_shared { // by the controllers of both kinds; borrowed
    struct executor executor;
    struct waiting *waiting; // for room
    struct decision_time time;
    const struct territory *territory; // namespaces in which nothing is decided; NULL: there are none
    const struct agent_setup *setup;   // what pods with an agent are made with; NULL until it is known
};

struct entry {
    struct entries *of;
    char *key, *uid; // another object of the same name has another UID, and observations of its own
    struct observations observations;
    int32_t crowd;      // the largest since the status waits (entry_crowd)
    int64_t requeue_ms; // of the plan in execution
    bool goes_on;       // that plan asks for the next decision at once
    int rounds;         // decisions since the key was given out
    bool waits_for_port;
    bool executes; // a plan
    uint64_t term; // in which it was made
};

struct entries_options { // copied
    enum kind kind;
    struct controller_shared *shared;
    struct metrics *metrics;
    uint64_t seed;
    // Decides about an object. `gang` has what all gangs need, with the pods that the object owns. Called twice if the
    // trials that the first plan asks for have been made before.
    void (*plan)(void *ctx, const struct object *o, const struct gang_view *gang, struct arena *a, struct plan *ret);
    // Notes what the plan means for the next ones.
    void (*note)(void *ctx, const struct object *o, struct observations *n, const struct plan *p, int64_t now_ms);
    void *ctx;
};

struct entries {
    struct entries_options options;
    struct controller *controller;
    struct map map; // key -> struct entry
    int32_t moving; // entries whose status waits
    uint64_t term;  // how often it was stopped
    bool started;   // else what is under way ends, and nothing is decided
    struct rand rand;
};

void entries_init(struct entries *all, struct loop *loop, const struct entries_options *options);
void entries_done(struct entries *all); // when idle, or after the client is gone
// Decisions begin, or begin again; all objects come.
void entries_start(struct entries *all);
// The term ends: what was noted in it is forgotten, now or when the plan is over that is in execution.
void entries_stop(struct entries *all);

// The object is decided about soon. Before the start nobody takes keys: a standby would collect those of all objects
// that ever came and went. ctx: the entries.
void entries_wake(void *ctx, const char *ns, const char *name);
void entries_wake_key(void *ctx, const char *key); // "namespace/name"
void entries_wake_object(void *ctx, const struct object *o);
void entries_look(struct entries *all); // all of them
const struct store *entries_objects(const struct entries *all);

// NULL: nothing was decided about it in this term.
const struct entry *entries_find(const struct entries *all, const char *key);
// How many statuses wait, or while this one does, how many did at most: as those before it are done the crowd thins,
// which is no sign that this one will not follow.
int32_t entry_crowd(const struct entry *e);
