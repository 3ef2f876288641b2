// SPDX-License-Identifier: Apache-2.0
#include "operator/api/condition.h"

#include "common/base/str.h"
#include "operator/api/tables.h"

static const char *const status_names[] = {
    [CONDITION_UNKNOWN] = "Unknown", [CONDITION_FALSE] = "False", [CONDITION_TRUE] = "True", NULL};

static const struct json_field condition_fields[] = {
    {"type", J_STRING, offsetof(struct condition, type), .required = true},
    {"status", J_ENUM, offsetof(struct condition, status), .names = status_names, .open_enum = true},
    {"reason", J_STRING, offsetof(struct condition, reason)},
    {"message", J_STRING, offsetof(struct condition, message)},
    {"observedGeneration", J_I64, offsetof(struct condition, observed_generation)},
    {"lastTransitionTime", J_TIME, offsetof(struct condition, changed_ms)},
};
const struct json_table condition_table = JSON_TABLE(struct condition, condition_fields);

const struct condition *condition_find(const struct condition *items, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(items[i].type, type))
            return &items[i];
    return NULL;
}

enum { MESSAGE_MAX = 32768 }; // of the schema

void conditions_write(struct json_writer *w, const struct condition *items, size_t n, bool times)
{
    writer_list(w, "conditions");
    for (size_t i = 0; i < n; i++) {
        const struct condition *c = &items[i];
        writer_object(w, NULL);
        writer_str(w, "type", c->type);
        writer_str(w, "status", status_names[c->status]);
        writer_str(w, "reason", c->reason);
        writer_str_max(w, "message", c->message ? c->message : "", MESSAGE_MAX);
        writer_i64(w, "observedGeneration", c->observed_generation);
        if (times)
            writer_time(w, "lastTransitionTime", c->changed_ms);
        writer_object_end(w);
    }
    writer_list_end(w);
}
