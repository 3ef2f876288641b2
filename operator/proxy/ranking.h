// SPDX-License-Identifier: Apache-2.0
// Which rank of a group is the least busy, without a look at all of them: for each lane with tasks a tree over the
// connected ranks, whose nodes have the fewest pending calls of the ranks below that have a free slot. What has changed
// since the last question is noted, and brought up to date with the next one: in a time that grows with the logarithm
// of the ranks for each change of a count, and with the ranks when one has come or gone.
#pragma once

#include "operator/proxy/member.h"

struct ranking {
    const struct list *members; // of the group
    // private
    struct member **by_rank;                // the connected ones
    size_t n, size;                         // how many; leaves of a tree: a power of 2
    size_t room;                            // of by_rank
    bool stale;                             // somebody has come or gone
    uint32_t *fewest[MEMBER_LANES_MAX + 1]; // trees, the root at 1; NULL = the lane has had no task
    struct list changed;                    // members whose counts have changed
};

void ranking_init(struct ranking *r, const struct list *members);
void ranking_done(struct ranking *r);
void ranking_stale(struct ranking *r);                     // a member has come or gone
void ranking_changed(struct ranking *r, struct member *m); // its calls have become more or fewer; it may have gone
// The member with the fewest pending calls of those with a free slot in the lane: of equals the first from rank `from`
// on, behind the last rank rank 0 again. NULL = there is none.
const struct member *ranking_least(struct ranking *r, uint8_t lane, uint32_t from);
