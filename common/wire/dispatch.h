// SPDX-License-Identifier: Apache-2.0
// Who gets which piece of a call's arguments, and whose results are kept in which order: verl's dispatch modes, and the
// rules that they are presets of. Pure arithmetic over ranks; what a piece is (an element of a list, rows of a batch)
// is for batch.h and the caller.
#ifndef CADRE_WIRE_DISPATCH_H
#define CADRE_WIRE_DISPATCH_H

#include "common/base/arena.h"
#include "common/base/json.h"
#include "common/wire/grid.h"
#include "common/wire/mode.h"

// What one call does, in the caller's arena.
struct dispatch {
    uint32_t world;
    enum mode_pieces form; // WHOLE: one, the arguments as they are; ELEMENTS: one a piece; ROWS: as many for each
    uint32_t n_chunks;     // pieces that the arguments are cut into
    const uint32_t *chunk; // of each rank, the number of its piece
    const uint32_t *keep;  // ranks whose results the caller gets, in this order
    uint32_t n_keep;
    bool join; // results that are batches become one batch; else a list
};

struct dispatch_at {
    const char *dim;
    int64_t index; // a coordinate; below 0 counted from the end, -1 = the last
};

// The members `split` and `collect` of a call's head.
//
//   split    {"mesh": "train", "dims": ["dp"]}              one piece for each coordinate; the first dimension varies
//                                                           slowest, whatever its place in the mesh
//            {"index": [0, 1, 0, 1]}                        or the number of its piece for each rank
//            {"elements": true}                             besides either: the pieces are elements of lists, no rows
//   collect  {"mesh": "train", "at": {"tp": 0, "pp": -1}}   keep the ranks at these coordinates, in the order of their
//                                                           pieces (of index: of their ranks). "first", "last" and
//                                                           "all" are coordinates, too
//            {"ranks": [0, 2]}                              or these, in this order
//            {"join": false}                                besides either: a list instead of one batch, which is
//                                                           the default only where the pieces are elements
//
// Without `split` every rank gets everything, without `collect` all ranks are kept. Where no mesh is named: the first
// of the group; to collect the mesh of `split`, for the generation of 3D_ALL_MICRO_DP the second.
struct dispatch_rule {
    const char *split_mesh, *collect_mesh; // NULL = default
    const char **dims;
    size_t n_dims;
    const uint32_t *index;
    size_t n_index;
    const struct dispatch_at *at;
    size_t n_at;
    const uint32_t *ranks;
    size_t n_ranks;
    bool elements;
    enum { DISPATCH_JOIN_DEFAULT, DISPATCH_JOIN, DISPATCH_LIST } join;
};

// Either may be NULL. Strings and lists are copied into the arena. ERR_INVALID names the member that is wrong.
int dispatch_rule_read(const struct json *split, const struct json *collect, struct arena *a, struct dispatch_rule *ret,
                       struct err *err);

// For `world` ranks with these meshes. `mode` is any but DEFAULT; `rule` (may be NULL) is what SPLIT does. Of the 3D
// modes it may name the meshes, whose dimensions must be some of pp, dp, cp, tp, and say `elements` and `join`; the
// others take none:
//
//   3D_PROTO         a piece for each dp; kept are tp 0, cp 0, pp last
//   3D_PP_ONLY       everything to all; kept are tp 0, cp 0, dp 0
//   3D_ALL_MICRO_DP  ranks of one training replica (same dp and cp) that generate together, which differ only in the
//                    generation mesh's pp and tp, get one piece; kept is the first of them. With training sizes p, t
//                    and generation sizes p', t' each replica has p*t / (p'*t') pieces, side by side
//
// ERR_INVALID, or ERR_NOT_FOUND for a mesh or dimension, in words for the caller.
int dispatch_make(enum record_dispatch mode, const struct dispatch_rule *rule, const struct grid *grids, size_t n_grids,
                  uint32_t world, struct arena *a, struct dispatch *ret, struct err *err);

#endif
