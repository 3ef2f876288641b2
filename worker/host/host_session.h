// SPDX-License-Identifier: Apache-2.0
// The connection of this worker to one proxy. It connects, sends HELLO, runs calls and answers them. If the connection
// is lost, it reconnects with jitter as long as the process lives: the agent decides whether the worker is still
// needed. Calls begin in the order in which they were sent. One loop, one thread. Methods run on the executor's
// threads.
//
//   worker                                       proxy
//   HELLO {"role": "worker", "version": 1, "software": "cadre-worker 0.1.0", "group": uid, "rank": 2, "attempt": 1,
//          "ticket": "...", "pid": 17, "module": ..., "class": ..., "methods": [...]}         (description.h)
//                                                WELCOME {"ticket": "..."}     the ticket of the next HELLO, if given
//                                                CALL (host_call.h), CANCEL, in any number
//   RESULT or ERROR, exactly one for each CALL
//   GOODBYE {"reason": ...}                      or the proxy says it, or sends an ERROR of call 0 instead of
//                                                WELCOME; then the connection is closed
#pragma once

#include "common/wire/record.h"
#include "worker/host/host_session_config.h"

struct session;

// Dials at once. The other strings of the configuration are borrowed. ERR_INVALID: the address is wrong.
struct session *session_new(struct loop *loop, const struct session_config *config, struct err *err);
bool session_up(const struct session *s); // the proxy has said WELCOME
// Sends a PLACE, an ARCHIVE or a PROGRESS. An answer goes to the module that the configuration names. Returns false if
// there is no connection.
bool session_send(struct session *s, enum record_type type, const char *body, size_t len);
// Refuses the calls that wait. Cancels the calls that run; they are answered when they return. Then says goodbye.
void session_stop(struct session *s);
void session_free(struct session *s); // at once; accepts NULL
