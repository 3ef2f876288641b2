// SPDX-License-Identifier: Apache-2.0
// How a call splits its arguments and collects its results, as JSON in its head.
#pragma once

#include "common/base/arena.h"
#include "common/base/json.h"

#include <stdbool.h>
#include <stdint.h>

struct dispatch_at {
    const char *dim;
    int64_t index; // a coordinate; below 0 counted from the end, -1 = the last
};

// The members `split` and `collect` of a call's head.
//
//   split    {"mesh": "train", "dims": ["dp"]}              one piece for each coordinate; the first dimension varies
//                                                           slowest, whatever its place in the mesh
//            {"index": [0, 1, 0, 1]}                        or the number of its piece for each rank
//            {"elements": true}                             with either: the pieces are elements of lists, not rows
//   collect  {"mesh": "train", "at": {"tp": 0, "pp": -1}}   keep the ranks at these coordinates, in the order of their
//                                                           pieces (of index: of their ranks). "first", "last" and
//                                                           "all" are coordinates, too
//            {"ranks": [0, 2]}                              or these, in this order
//            {"join": false}                                with either: a list instead of one batch. It is the
//                                                           default only if the pieces are elements
//
// Without `split`, every rank gets everything. Without `collect`, all ranks are kept. If no mesh is named, `split` uses
// the first mesh of the group, `collect` the mesh of `split`, and the generation of 3D_ALL_MICRO_DP the second mesh.
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

// Either may be NULL. Strings and lists are copied into the arena. ERR_INVALID names the wrong member.
int dispatch_rule_read(const struct json *split, const struct json *collect, struct arena *a, struct dispatch_rule *ret,
                       struct err *err);
