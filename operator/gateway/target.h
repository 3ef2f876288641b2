// SPDX-License-Identifier: Apache-2.0
// What a request's path asks for.
#pragma once

#include "common/base/err.h"

enum target_kind { TARGET_CONNECT, TARGET_CALLS, TARGET_CA };

struct target {
    enum target_kind kind;
    char ns[64];    // TARGET_CALLS: whose groups may be called
    char group[64]; // the one that calls without a group go to, "" = none
};

int target_parse(const char *path, struct target *ret, struct err *err); // ERR_NOT_FOUND
