// SPDX-License-Identifier: Apache-2.0
// Splits the arguments of a call into pieces. The arguments are elements of lists, for 2 pieces of add(x, y) in one of
// these forms:
//
//   [{"x": 1, "y": 5}, {"x": 2, "y": 6}]    a list with one element a piece: arguments, by name or by position
//   {"x": [1, 2], "y": [5, 6]}              an object of lists with one element a piece
//   [[1, 2], [5, 6]]                        the same by position, if the head says `positional`
//   a list of bodies (body_list.h)          each has the arguments of a piece: JSON, or a batch
//
// In the first form, an element that is neither object nor list is a single argument by position. Or the arguments are
// rows of a batch (batch.h). Values stay where they are: a piece consists of segments of the call's body, and of text
// that had to be written again (heads, names).
#pragma once

#include "common/wire/record.h"
#include "operator/proxy/body.h"
#include "operator/proxy/reference.h"

// Most bytes of heads and names that are written again, for all pieces together.
#define SPLIT_MADE_MAX ((size_t)64 << 20)

// The input of a split, besides the arguments. All pointers are borrowed. It does not refer to the call, which may end
// while long arguments are split (job.h).
struct split_input {
    const char *group;  // its key, for messages
    uint32_t n;         // number of pieces
    bool planned, rows; // the call has a dispatch plan; it splits the rows of a batch, else elements
    bool positional, pad;
    uint8_t dispatch;
    bool ref; // the arguments are one reference, and a piece is some of its parts
    struct reference_call call;
    struct quota *quota;
    struct blob *marks; // the router's
};

struct split_piece {
    size_t first, n; // of split.parts
};

struct split {
    struct record_part head; // of the call, the same for all ranks
    struct record_part *parts;
    size_t n_parts, size;
    struct split_piece *pieces;
    uint32_t n;
    size_t rows, each, added; // of a batch: its rows, the rows of a piece, and the rows of padding (0 = none)
    // private
    struct blob *body, *made; // contain the parts
    struct quota *quota;      // borrowed
    size_t charged;
};

// ERR_INVALID: the message says what is wrong with the arguments. ERR_LIMIT: no memory is left. Call split_done() in
// any case. Long work (fiber.h).
int split_make(const struct split_input *in, const struct call_body *body, const struct record_call *parts,
               struct split *ret, struct err *err);
void split_done(struct split *s);
int split_no_room(const char *method, struct err *err); // sets ERR_LIMIT
int split_too_many_heads(const char *method, uint32_t n, struct err *err);
