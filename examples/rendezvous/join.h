// SPDX-License-Identifier: Apache-2.0
// All ranks but rank 0: find it, say hello, wait for the go.
#pragma once

#include "job.h"

// Tries until the deadline. Returns false, after saying why, when it passed.
bool join_master(const struct job *job);
