// SPDX-License-Identifier: Apache-2.0
// Answers a worker that asks for the address of another rank, in its own group or in another one of its namespace.
// Ranks therefore need not agree on ports or addresses. docs/protocol.md, "Rendezvous".
#pragma once

#include "operator/proxy/router_state.h"

// Takes a PLACE record of that worker. ROUTER_COLLECT as in router_member_record(). ERR_PROTO: the record makes no
// sense.
int place_answer(struct router *r, struct member *m, const struct record *rec, struct err *err);
