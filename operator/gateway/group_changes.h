// SPDX-License-Identifier: Apache-2.0
// Requests of clients that no worker answers: the provisioner creates and deletes groups, agents end processes.
#pragma once

#include "operator/gateway/gateway_state.h"

void group_changes_run(struct gateway *g); // hands over what the router has noted
// A client has gone; done: and will not come again.
void group_changes_ended(struct gateway *g, const struct outlet *o, bool done);
