// SPDX-License-Identifier: Apache-2.0
// The proxy without its sockets: it decides which client's call goes to which worker processes, and what goes back.
// Records and events go in, records come out. It does no I/O. It never calls its owner back, because the callee could
// end the session or the member that is being worked on: news waits for router_changed(). A job (job.h) calls its own
// functions, which belong to the proxy: `work` in steps, then `done`, in router_turn().
//
// The owner of the connections
//
//   - reads records (whole bodies) and passes them to session_record() and router_member_record(),
//   - reports events: router_group_set(), router_worker_exited(), router_tick() at the latest after router_wait_ms(),
//     router_turn() at the end of each turn of the loop,
//   - and then does what router_changed() returns, until it returns NULL: send the queue, stop or continue reading,
//     close.
//
// One thread. docs/calls.md has the rules.
#pragma once

#include "operator/proxy/router_state.h"

void router_init(struct router *r, const struct router_config *config);
void router_done(struct router *r); // close all sessions and members first

// The group has changed in the cluster. A new attempt or another world size ends the registrations of its processes. A
// refusal fails the calls that wait.
void router_group_set(struct router *r, const struct group_facts *facts);
void router_group_gone(struct router *r, const char *uid);
// An agent has reported the end of a process. Its pending calls fail with the exit code.
void router_worker_exited(struct router *r, const char *uid, uint32_t attempt, uint32_t rank, int exit_code,
                          const char *last_lines); // what the process has printed; NULL = not known
// The GPUs of a rank, as a JSON list (common/wire/gpu.h), for group.info.
void router_gpus(struct router *r, const char *uid, uint32_t rank, const char *json);
// The names of all replicas of the operator, as a JSON list, for group.stats. Borrowed until the next call; NULL = they
// are not known.
void router_replicas(struct router *r, const char *names);

// A worker process has connected, and its identity was verified. `pod` and `node` are for messages. ERR_UNAVAILABLE:
// the group is not known here yet, the worker has to connect again. ERR_CONFLICT: its attempt is over.
int router_join(struct router *r, const struct member_identity *id, const char *hello, size_t len,
                struct record_writer *out, void *owner, struct member **ret, struct err *err);
// The connection has ended. The router does not use `out` any more, and the owner must not use the member.
void router_leave(struct router *r, struct member *m);
// Takes a record of a worker: a whole body, or a piece of one. ROUTER_COLLECT, for a first piece: collect the whole
// body, see record_reader_collect(). Negative: the worker broke the protocol, close the connection.
int router_member_record(struct router *r, struct member *m, const struct record *rec, struct err *err);

int64_t router_wait_ms(const struct router *r); // -1 = there is nothing to wait for
void router_tick(struct router *r); // router_turn() then sends the errors of calls that have waited too long
// Ends a turn of the loop: sends calls that need not wait any longer, continues to end sessions and groups, and tells
// the senders of bodies to pause or to go on. More than a turn's work is left to the next turn.
void router_turn(struct router *r);
struct peer *router_changed(struct router *r);
// Call this before the loop waits: time will have passed when the next event arrives.
void router_waits(struct router *r);
