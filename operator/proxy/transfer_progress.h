// SPDX-License-Identifier: Apache-2.0
// The progress of a transfer of weights to a group, as its ranks report it. docs/protocol.md, "Transfers of weights".
#pragma once

#include "common/base/json_writer.h"
#include "operator/proxy/router_state.h"

// Takes a PROGRESS record of that worker. ERR_PROTO: the record makes no sense.
int transfer_progress_take(struct member *m, const struct record *rec, struct err *err);
// Writes the member "transfer" of group.stats; nothing if no rank receives weights.
void transfer_progress_write(const struct group *g, struct json_writer *w);
