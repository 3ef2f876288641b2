// SPDX-License-Identifier: Apache-2.0
// Decides about all objects of one kind, WorkerGroups or PlacementGroups, again and again: snapshot, plan, execution.
// It keeps an entry for each object. It runs on the loop's thread.
#pragma once

#include "common/base/map.h"
#include "common/base/rand.h"
#include "operator/exec/decision_time.h"
#include "operator/exec/executor.h"
#include "operator/exec/observations.h"
#include "operator/exec/waiting_gangs.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/excluded_namespaces.h"

struct controller_shared { // borrowed; the controllers of both kinds use it
    struct executor executor;
    struct waiting_gangs *waiting; // gangs that wait for room
    struct decision_time time;
    // The namespaces where this installation decides nothing; NULL = there are none
    const struct excluded_namespaces *excluded;
    const struct agent_setup *setup; // the settings of pods with an agent; NULL until they are known
};

struct reconciler_entry {
    struct reconciler *of;
    char *key, *uid; // another object of the same name has another UID and its own observations
    struct observations observations;
    // The largest number of waiting statuses since this one waits (gang_view.waiting_statuses); 0 = it does not wait.
    // The wait of this one must not become shorter because others are written.
    int32_t most_waiting;
    int64_t requeue_ms; // of the plan that is being carried out
    bool goes_on;       // that plan asks for the next decision at once
    int rounds;         // decisions since the queue gave out the key
    bool waits_for_port;
    bool executes; // a plan is being carried out
    uint64_t term; // the term in which this entry was made
};

struct reconciler_options { // copied
    enum kind kind;
    struct controller_shared *shared;
    struct metrics *metrics;
    uint64_t seed;
    // Decides about an object. `gang` contains what all gangs need, with the pods that the object owns. It is called a
    // second time if the answers to the dry runs of the first plan are known already.
    void (*plan)(void *ctx, const struct object *o, const struct gang_view *gang, struct arena *a, struct plan *ret);
    // Called after each decision. Forgets the trouble of a gang that runs now. observations_planned() notes the rest.
    void (*note)(void *ctx, const struct object *o, struct observations *n, const struct plan *p, int64_t now_ms);
    void *ctx;
};

struct reconciler {
    struct reconciler_options options;
    struct controller *controller;
    struct map map;           // key -> struct reconciler_entry
    int32_t waiting_statuses; // entries whose status waits to be written
    uint64_t term;            // how often reconciler_stop() was called
    bool started;             // false: running plans end, and it decides nothing
    struct rand rand;
};

void reconciler_init(struct reconciler *r, struct loop *loop, const struct reconciler_options *options);
void reconciler_done(struct reconciler *r); // call it when idle, or after the client is freed
// Begins to decide, or begins again. It looks at all objects.
void reconciler_start(struct reconciler *r);
// Ends the term. It forgets the notes of this term: now, or when the plan that is being carried out ends.
void reconciler_stop(struct reconciler *r);

// Decides about the object soon. Before reconciler_start() these functions do nothing. Otherwise a replica that does
// not lead would collect the keys of all objects that ever existed. `ctx` is a struct reconciler.
void reconciler_wake(void *ctx, const char *ns, const char *name);
void reconciler_wake_key(void *ctx, const char *key); // "namespace/name"
void reconciler_wake_object(void *ctx, const struct object *o);
void reconciler_look(struct reconciler *r); // wakes all objects
const struct store *reconciler_objects(const struct reconciler *r);
// Returns the Service; NULL = there is none, or it is being deleted.
const struct service *reconciler_service(const struct reconciler *r, const char *ns, const char *name);

// Returns NULL if it has decided nothing about the object in this term.
const struct reconciler_entry *reconciler_find(const struct reconciler *r, const char *key);
