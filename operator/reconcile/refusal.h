// SPDX-License-Identifier: Apache-2.0
// A spec that cannot run. Processes of an earlier spec continue, as long as they can.
#pragma once

#include "operator/reconcile/work.h"

void refusal_keep_earlier(struct work *w, const char *reason, const char *message);
