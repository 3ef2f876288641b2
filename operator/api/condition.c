// SPDX-License-Identifier: Apache-2.0
#include "operator/api/condition.h"

#include "common/base/str.h"
#include "operator/api/json_table.h"

static const char *const status_names[] = {
    [CONDITION_UNKNOWN] = "Unknown", [CONDITION_FALSE] = "False", [CONDITION_TRUE] = "True", NULL};

enum { MESSAGE_MAX = 32768 }; // the limit of the schema

// clang-format off
const struct json_table condition_table = JSON_TABLE(struct condition,
    {"type", J_STRING, offsetof(struct condition, type), .required = true},
    {"status", J_ENUM, offsetof(struct condition, status), .names = status_names, .open_enum = true},
    {"reason", J_STRING, offsetof(struct condition, reason)},
    {"message", J_STRING, offsetof(struct condition, message), .missing_str = "", .max = MESSAGE_MAX},
    {"observedGeneration", J_I64, offsetof(struct condition, observed_generation)},
    {"lastTransitionTime", J_TIME, offsetof(struct condition, changed_ms), .since = true});
// clang-format on

const struct condition *condition_find(const struct condition *items, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(items[i].type, type))
            return &items[i];
    return NULL;
}
