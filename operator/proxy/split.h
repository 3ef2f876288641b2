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

#include "common/wire/record.h"
#include "operator/proxy/body.h"
#include "operator/proxy/reference.h"

#define SPLIT_MADE_MAX ((size_t)64 << 20) // bytes of heads and names that are written again for all pieces together

// What it depends on, besides the arguments. All pointers are borrowed; it does not know the call, which may end while
// long arguments are split (job.h).
struct split_input {
    const char *group;  // the key, for messages
    uint32_t n;         // pieces
    bool planned, rows; // there is a dispatch plan; of a batch's rows, else of elements
    bool positional, pad;
    uint8_t dispatch;
    bool ref;                          // the arguments are one reference, and a piece is some of its parts
    const struct reference_call *call; // the call
    struct quota *quota;
    struct blob *marks; // of the router
};

struct split_piece {
    size_t first, n; // of the parts
};

struct split {
    struct record_part head; // of the call, for all ranks
    struct record_part *parts;
    size_t n_parts, size;
    struct split_piece *pieces;
    uint32_t n;
    size_t rows, each, added; // of a batch: its rows, those of a piece; and rows of padding, 0 = there is none
    // private
    struct blob *body, *made; // what the parts lie in
    struct quota *quota;      // borrowed
    size_t charged;
};

// ERR_INVALID says what is wrong with the arguments, ERR_LIMIT that memory is used up. split_done() in any case. Long
// work (fiber.h).
int split_make(const struct split_input *in, const struct call_body *body, const struct record_call *parts,
               struct split *ret, struct err *err);
void split_done(struct split *s);
int split_no_room(const char *method, struct err *err); // the message of ERR_LIMIT
int split_too_many_heads(const char *method, uint32_t n, struct err *err);
