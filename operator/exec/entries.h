// SPDX-License-Identifier: Apache-2.0
// What a controller remembers about each of its objects, and when it decides about the object again. For WorkerGroups
// and PlacementGroups. On the loop's thread.
#pragma once

#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/base/rand.h"
#include "operator/exec/observations.h"
#include "operator/exec/waiting.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/territory.h"

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

struct entries { // the owner fills in the first part
    struct controller *controller;
    struct waiting *waiting;
    const struct clock *clock;
    const char *kind, *word;           // "WorkerGroup", and what log lines call it: "group"
    bool keeps_pod;                    // as the observations have it
    const struct territory *territory; // namespaces in which nothing is decided; NULL: there are none
    void (*decide)(void *ctx, const char *key);
    void *ctx;
    // Its own
    struct map map; // key -> struct entry
    int32_t moving; // entries whose status waits
    uint64_t term;  // how often it was stopped
    bool stopped;   // what is under way ends, and no other decision follows
    struct rand rand;
};

void entries_done(struct entries *all);
// Decisions begin, or begin again.
void entries_start(struct entries *all);
// The term ends: what was noted in it is forgotten, now or when the plan is over that is in execution.
void entries_stop(struct entries *all);

// NULL: nothing was decided about it in this term.
const struct entry *entries_find(const struct entries *all, const char *key);
struct entry *entries_get(struct entries *all, const char *key, const char *uid);
// The object is gone, or another installation's: its key is given back for good.
void entries_forget(struct entries *all, const char *key);

// For controller_options, with the entries as ctx: the key was given out, and is decided about.
void entries_reconcile(void *ctx, const char *key);
// Notes what the plan itself says about the time to come, and logs it.
void entry_planned(struct entry *e, const struct plan *p, int64_t now_ms, struct arena *a);
// How many statuses wait, or while this one does, how many did at most: as those before it are done the crowd thins,
// which is no sign that this one will not follow.
int32_t entry_crowd(const struct entry *e);
// For execution_start(), with the entry as ctx: the next decision at once, or the key is given back.
void entry_executed(void *ctx, const struct err *err);
