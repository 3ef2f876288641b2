// SPDX-License-Identifier: Apache-2.0
// Explains why a gang does not fit, in one line of the same form for all strategies:
//
//   needs WHAT, found HOW MANY; N of M nodes have room (REST BY CAUSE)        when pods are in the way
//   needs WHAT, at most HOW MANY fit; N of M nodes qualify (REST BY CAUSE)    when even empty nodes are not enough
//
// N and the counts in the rest add up to M. WHAT names the one resource that is short, or all of them if only their sum
// is short. Examples: docs/placement.md.
#pragma once

#include "operator/placement/search.h"

struct explanation {
    const char *message; // the line above
    // More, one thing per line, NULL if there is nothing more:
    //
    // |:   nearest: n7 with 6 of 8 free nvidia.com/gpu
    //   in use there: 32 of 40 nvidia.com/gpu, 16 by WorkerGroup ml/llama, 8 by PlacementGroup ml/gpus, 8 by others
    const char *details;
    int short_of; // the resource that is short, -1 = only all of them together are
};

// Call this after a failed try in `s`. The memory comes from the arena of `s`.
void explain(struct search *s, const struct cluster *c, struct explanation *ret);
