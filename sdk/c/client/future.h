// SPDX-License-Identifier: Apache-2.0
// Answers that the client keeps until they are taken, for calls that ask for this. Without threads, an answer is in
// client.finished until cadre_client_next() returns its call, and then in client.handed_out. With threads, all answers
// are in client.handed_out, and cadre_client_next() returns the calls of client.notices.
#pragma once

#include "sdk/c/client/client_state.h"

// error: the call failed; r is its ERROR then, or NULL. p keeps its entry, is in no other list and holds nothing else.
void future_keep(struct cadre_client *c, struct pending *p, const struct record *r, const cadre_client_error *error);
// A watched call is answered: cadre_client_next() returns it, also if another thread takes its answer first.
void future_notify(struct cadre_client *c, uint64_t id);
uint64_t future_notified(struct cadre_client *c);            // takes the next notice; 0 = there is none
void future_drop(struct cadre_client *c, struct pending *p); // taken or forgotten: the call is over
void futures_done(struct cadre_client *c);
