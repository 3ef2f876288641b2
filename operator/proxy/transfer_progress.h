// SPDX-License-Identifier: Apache-2.0
// How far a transfer of weights to a group has come, as its ranks tell it. docs/protocol.md, "Transfers of weights".
#pragma once

#include "common/base/json_writer.h"
#include "operator/proxy/router_state.h"

// A PROGRESS record of that worker. ERR_PROTO: it makes no sense.
int transfer_progress_take(struct member *m, const struct record *rec, struct err *err);
// The member "transfer" of group.stats; nothing where no rank gets weights.
void transfer_progress_write(const struct group *g, struct json_writer *w);
