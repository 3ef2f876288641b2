// SPDX-License-Identifier: Apache-2.0
// Why a gang does not fit, in one line of one form for all strategies:
//
//   needs WHAT, found HOW MANY; N of M nodes have room (REST BY CAUSE)        when pods are in the way
//   needs WHAT, at most HOW MANY fit; N of M nodes qualify (REST BY CAUSE)    when not even empty nodes are enough
//
// The rest by cause and N add up to M. WHAT names the one resource that is short, all of them where only together they
// are. Examples: docs/placement.md.
#ifndef CADRE_PLACEMENT_EXPLAIN_H
#define CADRE_PLACEMENT_EXPLAIN_H

#include "operator/placement/search.h"

// `s` after a try that failed. Memory from its arena.
const char *explain(struct search *s);

#endif
