// SPDX-License-Identifier: Apache-2.0
// Whether all members are about to call the same collective with the same arguments. Pure.
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>

// whats[i]: what member i is about to do, in words. False: they differ, and `out` says who wants what:
// "rank 0, rank 2: all_reduce of 4 F32 with sum; rank 1: all_reduce of 3 F32 with sum".
bool agreement_holds(const char *const *whats, const char *const *names, int n, struct buf *out);
