// SPDX-License-Identifier: Apache-2.0
// Sends calls that waited for their group or a slot, when they need not wait any longer.
#pragma once

#include "operator/proxy/proxy_group.h"

// Sends at most *work calls of this group and subtracts them from *work. False: more calls may be ready.
bool calls_release(struct group *g, unsigned *work);
