// SPDX-License-Identifier: Apache-2.0
// This worker at one proxy: connects, sends HELLO, runs calls and answers them. If the connection is lost, it
// reconnects with jitter, as long as the process lives: its agent decides whether the worker is still needed. Calls
// begin in the order in which they were sent. One loop, one thread; methods run on the executor's threads.
//
//   worker                                       proxy
//   HELLO {"role": "worker", "version": 1, "software": "cadre-worker 0.1.0", "group": uid, "rank": 2, "attempt": 1,
//          "ticket": "...", "pid": 17, "module": ..., "class": ..., "methods": [...]}         (description.h)
//                                                WELCOME {"ticket": "..."}     the ticket of the next HELLO, if given
//                                                CALL (host_call.h), CANCEL, in any number
//   RESULT or ERROR, exactly one a CALL
//   GOODBYE {"reason": ...}                      or the other way round, or an ERROR of call 0 instead of the
//                                                WELCOME; then the connection is closed
#pragma once

#include "common/wire/record.h"
#include "worker/host/host_session_config.h"

struct session;

// Dials at once. The other strings of the configuration are borrowed. ERR_INVALID for an address that makes no sense.
struct session *session_new(struct loop *loop, const struct session_config *config, struct err *err);
bool session_up(const struct session *s); // the proxy has said WELCOME
// A PLACE or an ARCHIVE, whose answer goes where the configuration says, or a PROGRESS. False: it is not connected.
bool session_send(struct session *s, enum record_type type, const char *body, size_t len);
// Calls that wait are refused, the one that runs is canceled and answered when it returns; then says goodbye.
void session_stop(struct session *s);
void session_free(struct session *s); // at once; accepts NULL
