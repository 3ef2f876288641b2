// SPDX-License-Identifier: Apache-2.0
// The path of a request, and what it asks for.
#pragma once

#include "common/base/err.h"

enum target_kind { TARGET_CONNECT, TARGET_CALLS, TARGET_CA };

struct target {
    enum target_kind kind;
    char ns[64];    // TARGET_CALLS: the namespace of the groups that may be called
    char group[64]; // the group for calls that name none; "" = none
};

int target_parse(const char *path, struct target *ret, struct err *err); // ERR_NOT_FOUND
