// SPDX-License-Identifier: Apache-2.0
// The arguments of a call in pieces. Elements of lists, for 2 pieces of add(x, y) in any of
//
//   [{"x": 1, "y": 5}, {"x": 2, "y": 6}]    a list with one element a piece: arguments, by name or by position
//   {"x": [1, 2], "y": [5, 6]}              an object of lists with one element a piece
//   [[1, 2], [5, 6]]                        the same by position, where the head says `positional`
//   a list of bodies (body_list.h)          each the arguments of a piece: JSON, or a batch
//
// where an element of the first that is neither object nor list stands for a single argument by position; or rows of a
// batch (batch.h). Values stay where they are: a piece is made of stretches of the call's body, and of what had to be
// written again (heads, names).
#pragma once

#include "operator/proxy/call.h"
#include "operator/proxy/dispatch_plan.h"

#define SPLIT_MADE_MAX ((size_t)64 << 20) // bytes of heads and names that are written again for all pieces together

struct split_piece {
    size_t first, n; // of the parts
};

struct split {
    struct record_part head; // of the call, for all ranks
    struct record_part *parts;
    size_t n_parts, size;
    struct split_piece *pieces;
    uint32_t n;
    // private
    struct blob *body, *made; // what the parts lie in
    struct quota *quota;      // borrowed from the call
    size_t charged;
};

// c->plan says into how many pieces, and of what form; without one there is an element for each rank. What is known of
// a batch goes into the plan. ERR_INVALID says what is wrong with the arguments, ERR_LIMIT that memory is used up.
// split_done() in any case.
int split_make(struct call *c, const struct call_body *body, const struct record_call *parts, struct split *ret,
               struct err *err);
void split_done(struct split *s);
