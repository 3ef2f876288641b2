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

struct host_session;

// Dials at once. The other strings of the configuration are borrowed. ERR_INVALID: the address is wrong.
struct host_session *host_session_new(struct loop *loop, const struct host_session_config *config, struct err *err);
bool host_session_up(const struct host_session *s); // the proxy has said WELCOME
// Sends a PLACE, an ARCHIVE or a PROGRESS. An answer goes to the module that the configuration names. Returns false if
// there is no connection.
bool host_session_send(struct host_session *s, enum record_type type, const char *body, size_t len);
// Refuses the calls that wait. Cancels the calls that run; they are answered when they return. Then says goodbye.
void host_session_stop(struct host_session *s);
void host_session_free(struct host_session *s); // at once; accepts NULL
