// SPDX-License-Identifier: Apache-2.0
// The dispatch and execute modes: the one table of them, which cadre/worker.h, cadre/client.h, the other languages and
// Cadre itself read. docs/calls.md has a picture of each, docs/protocol.md says exactly who gets what. A new mode
// is a row here, its rule in common/wire/dispatch.c (if none fits) with a test in tests/unit/common/wire/
// test_dispatch.c, and its picture in docs/calls.md. The lists in docs/calls.md, docs/protocol.md and
// docs/man/kubectl-cadre.1 must have the modes of this table, and no others: tests/docs/check_docs.py compares them.
#ifndef CADRE_MODES_H
#define CADRE_MODES_H

// How arguments reach the ranks, and results the client. X(name, number, rule, pieces, takes, results):
//
//   number   on the wire; they have no gap and do not change
//   rule     who gets which piece and whose results are kept, in common/wire/dispatch.c: plan_<rule>()
//   pieces   what the arguments are split into: WHOLE, they are not; ELEMENTS of lists; ROWS of a batch. With JOINED
//            results, what a rank returns must be a batch, too
//   takes    what `split` and `collect` may say. NOTHING; MESHES: which meshes it looks at, `elements` and `join`;
//            RULE: all of it
//   results  LIST, or JOINED: the batches of ranks become one
#define CADRE_DISPATCH_MODES(X)                                                              \
    /* every rank gets the same arguments */                                                 \
    X(ONE_TO_ALL, 1, same, WHOLE, NOTHING, LIST)                                             \
    /* the client gives a list of arguments, one for each rank */                            \
    X(ALL_TO_ALL, 2, each, ELEMENTS, NOTHING, LIST)                                          \
    /* the same */                                                                           \
    X(DP_COMPUTE, 3, each, ELEMENTS, NOTHING, LIST)                                          \
    /* a batch, split into a piece for each rank; results are joined */                      \
    X(DP_COMPUTE_PROTO, 4, each, ROWS, NOTHING, JOINED)                                      \
    /* a batch, split into a piece for each dp of the mesh; joined from last pp, first tp */ \
    X(3D_PROTO, 5, replica, ROWS, MESHES, JOINED)                                            \
    /* a batch, split into a piece for each group that generates together */                 \
    X(3D_ALL_MICRO_DP, 6, micro, ROWS, MESHES, JOINED)                                       \
    /* the same arguments for all; a list of the results of the first dp and tp */           \
    X(3D_PP_ONLY, 7, stage, WHOLE, MESHES, LIST)                                             \
    /* as `split` and `collect` say, in the call or in cadre_method_rule() */                \
    X(SPLIT, 8, custom, ROWS, RULE, JOINED)                                                  \
    /* as DP_COMPUTE_PROTO, but results are a list */                                        \
    X(DP_COMPUTE_METRIC, 9, each, ROWS, NOTHING, LIST)

// Which ranks run it. X(name, number).
#define CADRE_EXECUTE_MODES(X)                                             \
    X(ALL, 1)                                                              \
    /* only rank 0 runs it; the client gets a single result, not a list */ \
    X(RANK_ZERO, 2)                                                        \
    /* the rank that has the fewest calls; likewise */                     \
    X(ANY, 3)

#endif
