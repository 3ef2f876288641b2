// SPDX-License-Identifier: Apache-2.0
// Arguments of ALL_TO_ALL and DP_COMPUTE, of which each rank gets its own. Two ways to write them down, for 2 ranks of
// add(x, y):
//
//   [{"x": 1, "y": 5}, {"x": 2, "y": 6}]    a list of one element a rank: its arguments, by name or by position
//   {"x": [1, 2], "y": [5, 6]}              an object of lists of one element a rank
//
// An element of the first that is neither object nor list stands for a single argument by position.
#ifndef CADRE_PROXY_SPLIT_H
#define CADRE_PROXY_SPLIT_H

#include "operator/proxy/call.h"

// Finds or makes the arguments of c->n ranks: offset and length go to the slots, and *ret is the blob that they lie in,
// a reference. ERR_INVALID says what is wrong with the arguments, ERR_LIMIT that memory is used up.
int split_args(struct call *c, const struct call_body *body, const struct record_call *parts, struct blob **ret,
               struct err *err);

#endif
