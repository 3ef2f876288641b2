// SPDX-License-Identifier: Apache-2.0
#include "operator/api/condition.h"

#include "common/base/str.h"
#include "operator/api/tables.h"

static const char *const status_names[] = {
    [CONDITION_UNKNOWN] = "Unknown", [CONDITION_FALSE] = "False", [CONDITION_TRUE] = "True", NULL};

JSON_TABLE(condition_table, struct condition,
           {.name = "type", .kind = J_STRING, .required = true, .offset = offsetof(struct condition, type)},
           {.name = "status", .kind = J_ENUM, .names = status_names, .offset = offsetof(struct condition, status)},
           {.name = "reason", .kind = J_STRING, .offset = offsetof(struct condition, reason)},
           {.name = "message", .kind = J_STRING, .offset = offsetof(struct condition, message)},
           {.name = "observedGeneration", .kind = J_I64, .offset = offsetof(struct condition, observed_generation)},
           {.name = "lastTransitionTime", .kind = J_TIME, .offset = offsetof(struct condition, changed_ms)});

const struct condition *condition_find(const struct condition *items, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(items[i].type, type))
            return &items[i];
    return NULL;
}

void conditions_write(struct json_writer *w, const struct condition *items, size_t n, bool times)
{
    writer_list(w, "conditions");
    for (size_t i = 0; i < n; i++) {
        const struct condition *c = &items[i];
        writer_object(w, NULL);
        writer_str(w, "type", c->type);
        writer_str(w, "status", status_names[c->status]);
        writer_str(w, "reason", c->reason);
        writer_str(w, "message", c->message ? c->message : "");
        writer_i64(w, "observedGeneration", c->observed_generation);
        if (times)
            writer_time(w, "lastTransitionTime", c->changed_ms);
        writer_object_end(w);
    }
    writer_list_end(w);
}
