// SPDX-License-Identifier: Apache-2.0
// A worker asks where another rank is, of its group or another one of its namespace: to meet it, without a port or an
// address that anybody had to agree on. docs/protocol.md, "Meetings".
#pragma once

#include "operator/proxy/router_state.h"

// A PLACE record of that worker. ROUTER_COLLECT as for member_record(). ERR_PROTO: it makes no sense.
int place_answer(struct router *r, struct member *m, const struct record *rec, struct err *err);
