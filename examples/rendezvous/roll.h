// SPDX-License-Identifier: Apache-2.0
// Rank 0: collects the others, prints the roll-call and lets them go.
#pragma once

#include "job.h"

// Returns false, after saying why, when not all ranks came in time. Strangers at the port are sent away: a line has a
// greatest length, a silent connection is closed after a while, and there is a greatest number of them.
bool roll_lead(const struct job *job);
