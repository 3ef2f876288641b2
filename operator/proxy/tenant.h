// SPDX-License-Identifier: Apache-2.0
// A namespace that shares the operator with all others: the bytes, calls and connections that it makes the operator
// hold, and its part of each turn of the loop. It may hold as much as is still free: half of everything if it is alone,
// a third if another namespace holds as much, and so on. A namespace that has nothing yet therefore always finds room.
// A weight multiplies what a namespace may hold, and its part of each turn.
#pragma once

#include "operator/proxy/router_state.h"

// The work of one turn of the loop: about so many short records, or 128 bytes each of what the proxy itself answers, or
// of JSON that it reads: a millisecond. Namespaces with more to do share it by weight, as far as the others leave it.
// What took more than a namespace's part is owed: it is taken from the turns that follow (deficit round robin), up to
// TENANT_OWES times the work of a turn.
enum { TENANT_TURN = 512, TENANT_UNIT_BYTES = 128, TENANT_OWES = 1024 };

// The parts of a turn follow from the turn before it, so a turn in which many namespaces begin at once could become
// long. After this much work, only a namespace that has done nothing in the turn may still do a little.
enum { TENANT_TURN_MAX = 2 * TENANT_TURN };

// If many calls are to be ended or sent, namespaces take turns. This is the number of calls per turn.
enum { TENANT_PART = 16 };

struct tenant {
    struct router *router;
    char *ns;
    unsigned refs; // of its sessions and calls, and while it owes
    uint32_t weight;
    struct quota *quota;
    uint32_t n_calls; // answered ones that a worker still has included
    uint32_t n_sessions;
    uint32_t spent;             // of this turn, and more that it owes
    struct list spender;        // in the router's list while it has spent something
    struct list jobs;           // job.h, not begun
    struct list employer;       // in the router's list while it has some
    struct deadlines deadlines; // of its calls
    struct deadline due;        // the earliest of them, in the router's deadlines
    // What is left for later turns
    struct list behind;  // in the router's list while there is any
    struct list failing; // lost members whose calls are still to get their errors
    struct list ended;   // sessions some of whose calls are still to be ended
    struct list gone;    // groups that were deleted, some of whose calls are still to be ended
    struct list stale;   // groups that have changed, so that some waiting calls can perhaps be sent
};

uint32_t tenant_weight(const struct router *r, const char *ns);
struct tenant *tenant_get(struct router *r, const char *ns); // a reference
struct tenant *tenant_ref(struct tenant *t);
void tenant_unref(struct tenant *t);

// A connection more, or less.
void tenant_enter(struct tenant *t);
void tenant_leave(struct tenant *t);

// ERR_THROTTLED: the namespace, or the operator, has as many calls as it may have.
int tenant_check_calls(const struct tenant *t, struct err *err);
// The same of connections, before one more.
int tenant_check_sessions(struct router *r, const char *ns, struct err *err);
// Why there is no room for more of one of its sessions: its own share, or the namespace's.
void tenant_explain(const struct tenant *t, const struct quota *session, struct err *err);

void tenant_spend(struct tenant *t, size_t units);
void tenant_ends_turn(struct tenant *t);      // takes what is left to it of this turn, and owes nothing for it
bool tenant_has_turn(const struct tenant *t); // else what came from it waits for a later turn
bool tenant_may_go_on(const struct router *r, const char *ns); // the same by name; the namespace may have no tenant yet
size_t tenant_slice(const struct tenant *t);                   // bytes of long JSON to be read at a time; some, always
bool tenants_next_turn(struct router *r);                      // whether one still owes

// A call's deadline; moves it.
void tenant_deadline(struct tenant *t, struct deadline *d, int64_t at);
void tenant_no_deadline(struct tenant *t, struct deadline *d); // nothing happens if it has none
// Something is left for a later turn: it is in one of the lists.
void tenant_falls_behind(struct tenant *t);
void tenants_due(struct router *r, int64_t now_ms);        // those with a call that has waited long enough fall behind
void tenant_look_again(struct tenant *t, struct group *g); // one of its groups is stale
