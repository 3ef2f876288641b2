// SPDX-License-Identifier: Apache-2.0
// The proxy without its sockets: which client's call goes to which worker processes, and what comes back. Records and
// events go in, records come out. No I/O. Nothing calls back with news, because what is called could end the session or
// the member that is being worked on: news waits for router_changed(). Two functions of router_config only answer a
// question, and change nothing here: how much weight a namespace has, and what the replicas of the operator are called.
// A job (job.h) calls its own functions, which belong to the proxy: `work` in steps, then `done`, in router_turn().
//
// The owner of the connections
//
//   - reads records (whole bodies) and passes them to session_record() and member_record(),
//   - reports events: router_group_set(), router_worker_exited(), router_tick() at the latest after router_wait_ms(),
//     router_turn() at the end of each turn of the loop,
//   - and then does what router_changed() returns, until it returns NULL: send the queue, stop or continue reading,
//     close.
//
// One thread. docs/calls.md has the rules.
#pragma once

#include "operator/proxy/router_state.h"

void router_init(struct router *r, const struct router_config *config);
void router_done(struct router *r); // all sessions and members must have been closed

// Something was changed in the cluster. A new attempt or another world ends the processes' places; a refusal fails the
// calls that wait.
void router_group_set(struct router *r, const struct group_facts *facts);
void router_group_gone(struct router *r, const char *uid);
// What an agent reported. Pending calls of that process fail with the exit code.
void router_worker_exited(struct router *r, const char *uid, uint32_t attempt, uint32_t rank, int exit_code,
                          const char *last_lines); // what it has printed; NULL = nobody knows
// The GPUs of a rank, as a JSON list (common/wire/gpu.h), for group.info.
void router_gpus(struct router *r, const char *uid, uint32_t rank, const char *json);

// A worker process whose identity was verified. `pod` and `node` are for messages. ERR_UNAVAILABLE: the group is not
// known here yet, dial in again; ERR_CONFLICT: its attempt is over.
int router_join(struct router *r, const struct member_identity *id, const char *hello, size_t len,
                struct record_writer *out, void *owner, struct member **ret, struct err *err);
// Its connection has ended; `out` and the member are not used by the owner any more.
void router_leave(struct router *r, struct member *m);
// A record of type RESULT or ERROR: a whole body, or a piece of one. ROUTER_COLLECT, to a first piece: this one is to
// come whole, see record_reader_collect(). Negative: the worker broke the protocol, close it.
int member_record(struct router *r, struct member *m, const struct record *rec, struct err *err);

int64_t router_wait_ms(const struct router *r); // -1 = nothing to wait for
void router_tick(struct router *r);             // router_turn() sends the errors of calls that have waited too long
// The end of a turn of the loop: sends on what waited and need not any more, ends what is left of sessions and groups,
// and stops or lets go on who sends bodies. What is more than a turn's work is left to the next turn.
void router_turn(struct router *r);
struct peer *router_changed(struct router *r);
void router_waits(struct router *r); // time passes from now on, until something comes in
