// SPDX-License-Identifier: Apache-2.0
// metav1.Condition.
#pragma once

#include "operator/api/object.h"

struct json_table;

enum condition_status { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE };

struct condition {
    const char *type;
    enum condition_status status;
    const char *reason, *message;
    int64_t observed_generation;
    int64_t changed_ms; // lastTransitionTime
};

const struct condition *condition_find(const struct condition *items, size_t n, const char *type);

extern const struct json_table condition_table;
