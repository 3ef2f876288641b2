// SPDX-License-Identifier: Apache-2.0
// Which rank gets which piece of a call's arguments, and which results are kept in which order: verl's dispatch modes,
// and the rules behind them. Pure arithmetic over ranks. batch.h and the caller know what a piece is (an element of a
// list, rows of a batch).
#pragma once

#include "common/base/arena.h"
#include "common/wire/dispatch_rule.h"
#include "common/wire/mesh.h"
#include "common/wire/mode.h"

// The plan of one call, in the caller's arena.
struct dispatch {
    uint32_t world;
    enum mode_pieces form; // WHOLE: one piece, the arguments as they are; ELEMENTS: one element for each piece; ROWS:
                           // equally many rows for each
    uint32_t n_pieces;     // pieces that the arguments are split into
    const uint32_t *piece_of; // for each rank, the number of its piece
    const uint32_t *keep;     // ranks whose results the client gets, in this order
    uint32_t n_keep;
    bool join; // results that are batches become one batch; otherwise a list
};

// Plans a call for `world` ranks with these meshes. `mode` is any mode except DEFAULT. `rule` (may be NULL) says what
// SPLIT does. For the 3D modes, it may set `elements` and `join`, and may name the meshes, whose dimensions must be
// some of pp, dp, cp, tp. The other modes take no rule:
//
//   3D_PROTO         a piece for each dp; kept are tp 0, cp 0, pp last
//   3D_PP_ONLY       everything to all; kept are tp 0, cp 0, dp 0
//   3D_ALL_MICRO_DP  ranks that generate together get one piece: ranks of one training replica (same dp and cp) that
//                    differ only in the generation mesh's pp and tp. The first of them is kept. With training sizes
//                    p, t and generation sizes p', t', each replica has p*t / (p'*t') pieces, side by side
//
// ERR_INVALID, or ERR_NOT_FOUND for a mesh or dimension, with a message for the client.
int dispatch_make(enum record_dispatch mode, const struct dispatch_rule *rule, const struct mesh *meshes,
                  size_t n_meshes, uint32_t world, struct arena *a, struct dispatch *ret, struct err *err);
