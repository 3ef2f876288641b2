// SPDX-License-Identifier: Apache-2.0
// The method group.kill: one rank's process ends at once, as if it had crashed, and whatever restarts it does. The
// process itself is not asked, for it may hang: the agent of its pod kills it, and what the agent says of its end is
// the answer. It waits for nothing: not for the group, nor behind other calls.
#ifndef CADRE_PROXY_KILL_H
#define CADRE_PROXY_KILL_H

#include "common/wire/record.h"
#include "operator/proxy/call.h"

enum { KILL_WAIT_MS = 30 * 1000 }; // for the end, where the caller gives no deadline

struct kill_order { // strings are the group's
    const char *group_uid, *key;
    uint32_t attempt; // of the process; 0 = none is connected: whichever there is
    uint32_t rank;
};

bool kill_is(const struct head *head);
int kill_check(const struct record_header *h, const struct head *head, struct err *err); // ERR_INVALID
// It is for a process that is connected, whatever its group refuses: what is being stopped may hang.
bool kill_reaches(const struct call *c);
// Notes it for the owner of the router, or answers it.
void kill_begin(struct call *c);

// For the owner of the router: the next that an agent is to be told of, NULL = none. It is answered when the process
// has ended, or was refused; in between its deadline may pass, so nobody else keeps the call.
struct call *kill_next(struct router *r, struct kill_order *ret);
void kill_refuse(struct call *c, const struct err *why); // at once: there is no agent to be told
// The agent has refused, later: whoever waits for the end of that rank.
void router_kill_refused(struct router *r, const char *group_uid, uint32_t rank, const char *why);

// For the router: the process of this rank and attempt has ended; those of older attempts than this are gone.
void kill_ended(struct group *g, uint32_t rank, uint32_t attempt);
void kill_replaced(struct group *g, uint32_t rank, uint32_t attempt);
void kill_outdated(struct group *g); // those of attempts that are over

#endif
