// SPDX-License-Identifier: Apache-2.0
// Answers a worker that asks for the address of another rank, in its own group or in another one of its namespace. The
// ranks thus need no agreed port or address. docs/protocol.md, "Rendezvous".
#pragma once

#include "operator/proxy/router_state.h"

// A PLACE record of that worker. ROUTER_COLLECT as for member_record(). ERR_PROTO: it makes no sense.
int place_answer(struct router *r, struct member *m, const struct record *rec, struct err *err);
