// SPDX-License-Identifier: Apache-2.0
// Which rank gets which piece of a call's arguments, and which results are kept in which order: verl's dispatch modes,
// and the rules behind them. Pure arithmetic over ranks. batch.h and the caller know what a piece is (an element of a
// list, rows of a batch).
#pragma once

#include "common/base/arena.h"
#include "common/wire/dispatch_rule.h"
#include "common/wire/grid.h"
#include "common/wire/mode.h"

// What one call does, in the caller's arena.
struct dispatch {
    uint32_t world;
    enum mode_pieces form; // WHOLE: one, the arguments as they are; ELEMENTS: one a piece; ROWS: as many for each
    uint32_t n_chunks;     // pieces that the arguments are split into
    const uint32_t *chunk; // of each rank, the number of its piece
    const uint32_t *keep;  // ranks whose results the client gets, in this order
    uint32_t n_keep;
    bool join; // results that are batches become one batch; else a list
};

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
// ERR_INVALID, or ERR_NOT_FOUND for a mesh or dimension, in words for the client.
int dispatch_make(enum record_dispatch mode, const struct dispatch_rule *rule, const struct grid *grids, size_t n_grids,
                  uint32_t world, struct arena *a, struct dispatch *ret, struct err *err);
