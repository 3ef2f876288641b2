// SPDX-License-Identifier: Apache-2.0
// Collectives between the ranks of a group: communicators, and what their members do together. For modules
// (cadre/worker.h) and for programs that run their methods themselves (cadre/host.h).
//
//   A communicator is made by all of its members, each in a method, with the same list of ranks. Its members then call
//   the same functions in the same order with the same types and counts. One thread uses a communicator at a time;
//   several communicators may be used at the same time. It may outlive the call in which it was made.
//
//   Calls return when their work is done. If the communicator has a stream, they return as soon as their work is on the
//   stream.
//
//   Nothing waits longer than the limit of the communicator. When a member dies, its communicators are aborted: every
//   call that is under way in them, and every later one, fails within a second and names the rank. When a member does
//   not call, the others fail at the limit and name it. After a failure, a communicator can only be freed. The members
//   that are left, or the restarted group, make a new one.
//
//   With CADRE_COLLECTIVE_DEBUG=1 in the environment of all ranks, members compare their calls. If they call different
//   functions, or if a send differs from its receive, they get an error that names both sides. The sender may get this
//   error in a later call. In debug mode, all calls except cadre_send() wait on the host, also on a stream, until the
//   members have compared. cadre_recv() waits until the other member has called cadre_send().
#ifndef CADRE_COLLECTIVE_H
#define CADRE_COLLECTIVE_H

#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cadre_comm cadre_comm;

typedef enum cadre_reduction {
    CADRE_SUM = 1,
    CADRE_PRODUCT = 2,
    CADRE_MIN = 3,
    CADRE_MAX = 4,
    CADRE_MEAN = 5, // of floating point types
} cadre_reduction;

typedef struct cadre_comm_options {
    size_t size; // cadre_comm_options_init() sets it
    // NULL or "gloo": memory of the host, over TCP. "nccl": memory of NVIDIA's GPUs. Each member has its own GPU: the
    // GPU of the thread's current context, otherwise number CADRE_DEVICE. Work that was begun on the default stream
    // comes first.
    const char *backend;
    // The members. By default, all ranks. `ranks`: these ranks, in this order. `mesh` and `dim`: the ranks that differ
    // from this one only in that dimension of spec.worker.meshes or of a published mesh; mesh NULL = the first one.
    const int *ranks;
    size_t n_ranks;
    const char *mesh, *dim;
    // The limit for each call, and for making the communicator. 0 = CADRE_COLLECTIVE_LIMIT_MS of the environment,
    // otherwise a minute.
    int64_t limit_ms;
    // Only for the back end nccl: a cudaStream_t of the member's GPU (the default one: cudaStreamLegacy). Calls return
    // as soon as their work is on it. Their memory is in use until the work is done; cadre_comm_wait() waits for that.
    // The caller owns the stream, and destroys it after the communicator. NULL = calls return when their work is done.
    void *stream;
} cadre_comm_options;

static inline void cadre_comm_options_init(cadre_comm_options *o)
{
    memset(o, 0, sizeof *o);
    o->size = sizeof *o;
}

// Waits for the other members. If the result is not CADRE_OK, the message for the client is written, so `return r;` is
// enough. CADRE_INVALID_ARGUMENT: the list, the mesh or the back end is not valid. CADRE_ERROR: the message names the
// members that did not come. options NULL = all ranks.
CADRE_EXPORT cadre_result cadre_comm_new(cadre_call *c, const cadre_comm_options *options, cadre_comm **ret);
// Call it when the other members do not need this member any more. Accepts NULL.
CADRE_EXPORT void cadre_comm_free(cadre_comm *comm);
CADRE_EXPORT int cadre_comm_rank(const cadre_comm *comm); // number of this member, from 0
CADRE_EXPORT int cadre_comm_size(const cadre_comm *comm);
// Why the last call failed, for people, until the next call; "" = it did not fail.
CADRE_EXPORT const char *cadre_comm_error(const cadre_comm *comm);

// Types are the same as in batches: "F32", "BF16", "I64", ... All can be moved. gloo reduces F64, F32, F16, BF16 and
// integers. NCCL reduces the same types without I16 and U16, and from 2.24 on also F8_E4M3 and F8_E5M2. `n` counts
// elements, which must fill whole bytes: an even number of F4, a multiple of 4 of F6_E2M3 and F6_E3M2. `in` and `out`
// of cadre_all_reduce() may be the same memory. Otherwise they must not overlap. CADRE_INVALID_ARGUMENT: nothing was
// sent, and the communicator can still be used.
CADRE_EXPORT cadre_result cadre_all_reduce(cadre_comm *comm, const char *dtype, const void *in, void *out, size_t n,
                                           cadre_reduction reduction);
CADRE_EXPORT cadre_result cadre_broadcast(cadre_comm *comm, const char *dtype, void *data, size_t n, int root);
// `n`: elements for each member. `out` of cadre_all_gather(), `in` of cadre_reduce_scatter(), and both of
// cadre_all_to_all() have n * size elements, in the order of the members.
CADRE_EXPORT cadre_result cadre_all_gather(cadre_comm *comm, const char *dtype, const void *in, void *out, size_t n);
CADRE_EXPORT cadre_result cadre_reduce_scatter(cadre_comm *comm, const char *dtype, const void *in, void *out, size_t n,
                                               cadre_reduction reduction);
CADRE_EXPORT cadre_result cadre_all_to_all(cadre_comm *comm, const char *dtype, const void *in, void *out, size_t n);
// From one member to another, which must call the other function. Messages between two members arrive in the order
// sent.
CADRE_EXPORT cadre_result cadre_send(cadre_comm *comm, const char *dtype, const void *data, size_t n, int to);
CADRE_EXPORT cadre_result cadre_recv(cadre_comm *comm, const char *dtype, void *data, size_t n, int from);
CADRE_EXPORT cadre_result cadre_barrier(cadre_comm *comm);

// Waits until all work on the communicator's stream is done, but not longer than the limit. This function and the next
// call also report errors that came after the earlier calls returned: a member was lost, or a member has not called the
// same function as the others. When a member dies, its collectives end within a second on the streams of the others,
// even if the program waits for these by CUDA. Their output is then not valid, and this function says so. Only this
// function ends the wait for a member that does not call. Without a stream: CADRE_OK, unless the communicator has
// failed.
CADRE_EXPORT cadre_result cadre_comm_wait(cadre_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
