// SPDX-License-Identifier: Apache-2.0
// Events of a client: its calls, and the end of its connection.
#pragma once

#include "common/wire/record_reader.h"
#include "operator/proxy/session_state.h"

// `group`: the default, may be NULL.
struct session *session_new(struct router *r, const char *ns, const char *group, struct record_writer *out,
                            void *owner);
// Cancels what is not answered, in the turns that come. Its owner and the writer are not used any more.
void session_end(struct session *s);
void session_listen(struct session *s);     // to what the ranks of its default group print, if it is there
bool session_idle(const struct session *s); // all is answered

// A record from the client: CALL, ARGS or CANCEL, a whole body or a piece of one. `unfinished` is
// record_reader_unfinished() after it: calls begin in the order in which they were sent, even where a small one has
// overtaken a long one. ROUTER_COLLECT, to a first piece: this one is to come whole, see record_reader_collect().
// Negative: the client broke the protocol, close it; a call that cannot be made is answered with an ERROR instead,
// and what is left of its body is passed over.
int session_record(struct session *s, const struct record *rec, uint64_t unfinished, struct err *err);

// For the router
bool sessions_go_on_ending(struct tenant *t, unsigned *work); // false: the work is over before they are
