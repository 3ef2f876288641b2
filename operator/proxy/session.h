// SPDX-License-Identifier: Apache-2.0
// Events of a client: its calls, and the end of its connection.
#pragma once

#include "common/wire/record_reader.h"
#include "operator/proxy/session_state.h"

// `group`: the default group; NULL or "" = none.
struct session *session_new(struct router *r, const char *ns, const char *group, struct record_writer *out,
                            void *owner);
// The connection has ended. The router does not use its owner and writer any more, and cancels its calls in the next
// turns.
void session_end(struct session *s);
void session_listen(struct session *s);     // to the output of its default group, if the group exists
bool session_idle(const struct session *s); // every request is answered

// Takes a record of the client: CALL, ARGS or CANCEL, with a whole body or a piece of one. `unfinished` is
// record_reader_unfinished() after it: calls begin in the order in which they were sent, even if a small one has
// overtaken a long one. ROUTER_COLLECT, for a first piece: collect the whole body, see record_reader_collect().
// Negative: the client broke the protocol, close the connection. A call that cannot be made is answered with an ERROR
// instead, and the rest of its body is skipped.
int session_record(struct session *s, const struct record *rec, uint64_t unfinished, struct err *err);

// For the router
bool sessions_go_on_ending(struct tenant *t, unsigned *work); // false: the work is used up before all have ended
