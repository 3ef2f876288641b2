// SPDX-License-Identifier: Apache-2.0
// A namespace that shares the operator with all others: the bytes, calls and connections that it makes the operator
// hold, and its part of each turn of the loop. It may hold as much as is still free: half of everything if it is alone,
// a third if another namespace holds as much, and so on. A namespace that has nothing yet therefore always finds room.
// A weight multiplies what a namespace may hold, and its part of each turn.
#pragma once

#include "operator/proxy/router_state.h"

// The units of work in one turn of the loop, which takes about a millisecond. A unit is a short record, or 128 bytes
// that the proxy itself answers or reads as JSON. Namespaces with more work share by weight what the others leave of
// the turn. If a namespace does more than its part, it owes the rest: later turns subtract it (deficit round robin), up
// to TENANT_OWES times the work of a turn.
enum { TENANT_TURN = 512, TENANT_UNIT_BYTES = 128, TENANT_OWES = 1024 };

// The parts of a turn follow from the turn before it, so a turn in which many namespaces begin at once could become
// long. After this much work, only a namespace that has done nothing in the turn may still do a little.
enum { TENANT_TURN_MAX = 2 * TENANT_TURN };

// If many calls must be ended or sent, namespaces take turns. Each time, this many calls of one namespace are
// handled.
enum { TENANT_PART = 16 };

struct tenant {
    struct router *router;
    char *ns;
    unsigned refs; // held by its sessions and calls, and while it owes work
    uint32_t weight;
    struct quota *quota;
    uint32_t n_calls; // includes answered calls that a worker still has
    uint32_t n_sessions;
    uint32_t spent;             // work that it has done in this turn, and that it owes
    struct list charged;        // in the router's list while `spent` is not 0
    struct list jobs;           // jobs that have not begun (job.h)
    struct list with_jobs;      // in the router's list while it has jobs
    struct deadlines deadlines; // of its calls
    struct deadline due;        // the earliest of them, in the router's deadlines
    // Left for later turns:
    struct list behind;  // in the router's list while anything is left
    struct list failing; // lost members whose calls still have to get their errors
    struct list ended;   // sessions that have ended, some of whose calls have not
    struct list gone;    // groups that were deleted and still have calls
    struct list stale;   // groups that have changed, so that calls that wait can perhaps be sent
};

uint32_t tenant_weight(const struct router *r, const char *ns);
struct tenant *tenant_get(struct router *r, const char *ns); // returns a reference
struct tenant *tenant_ref(struct tenant *t);
void tenant_unref(struct tenant *t);

// Counts a connection that opens or closes.
void tenant_enter(struct tenant *t);
void tenant_leave(struct tenant *t);

// ERR_THROTTLED: the namespace, or the operator, has as many calls as it may have.
int tenant_check_calls(const struct tenant *t, struct err *err);
// The same for connections, before one more opens.
int tenant_check_sessions(struct router *r, const char *ns, struct err *err);
// Explains why a session has no room: its own share is used up, or the namespace's.
void tenant_explain(const struct tenant *t, const struct quota *session, struct err *err);

void tenant_spend(struct tenant *t, size_t units);
void tenant_ends_turn(struct tenant *t);      // uses up the rest of its part of this turn, without owing anything
bool tenant_has_turn(const struct tenant *t); // false: its records wait for a later turn
// The same by name, also for a namespace without a tenant.
bool tenant_may_go_on(const struct router *r, const char *ns);
size_t tenant_slice(const struct tenant *t); // how many bytes of long JSON to read at a time; never 0
bool tenants_next_turn(struct router *r);    // whether a namespace still owes work

// Sets or moves the deadline of a call.
void tenant_deadline(struct tenant *t, struct deadline *d, int64_t at);
void tenant_no_deadline(struct tenant *t, struct deadline *d); // nothing happens if there is no deadline
// One of the lists has got an entry, for a later turn.
void tenant_falls_behind(struct tenant *t);
void tenants_due(struct router *r, int64_t now_ms);        // tenants whose first deadline has passed fall behind
void tenant_look_again(struct tenant *t, struct group *g); // marks one of its groups as stale
