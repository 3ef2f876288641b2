// SPDX-License-Identifier: Apache-2.0
// Requests of clients that no worker answers. The provisioner creates and deletes groups, and agents kill processes.
#pragma once

#include "operator/gateway/gateway_state.h"

void group_changes_run(struct gateway *g); // passes on the requests that the router has recorded
// A client has disconnected. `done`: it will not come again.
void group_changes_ended(struct gateway *g, const struct peer_owner *o, bool done);
