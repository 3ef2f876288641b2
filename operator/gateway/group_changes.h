// SPDX-License-Identifier: Apache-2.0
// What clients ask for that no worker does: groups by the provisioner, the end of processes by their agents.
#pragma once

#include "operator/gateway/gateway_state.h"

void group_changes_run(struct gateway *g); // hands over what the router has noted
// A client has gone; done: and will not come again.
void group_changes_ended(struct gateway *g, const struct outlet *o, bool done);
