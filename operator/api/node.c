// SPDX-License-Identifier: Apache-2.0
#include "operator/api/node.h"

#include "operator/api/tables.h"

static JSON_TABLE(taint_table, struct taint,
                  {.name = "key", .kind = J_STRING, .offset = offsetof(struct taint, key)},
                  {.name = "value", .kind = J_STRING, .offset = offsetof(struct taint, value)},
                  {.name = "effect", .kind = J_STRING, .offset = offsetof(struct taint, effect)});
static JSON_TABLE(spec_table, struct node,
                  {.name = "taints", .kind = J_LIST, .table = &taint_table, .offset = offsetof(struct node, taints),
                   .offset_n = offsetof(struct node, n_taints)},
                  {.name = "unschedulable", .kind = J_BOOL, .offset = offsetof(struct node, unschedulable)});
static JSON_TABLE(status_table, struct node,
                  {.name = "allocatable", .kind = J_QUANTITIES, .offset = offsetof(struct node, allocatable)});

struct conditions {
    struct condition *items;
    size_t n;
};
static JSON_TABLE(conditions_table, struct conditions,
                  {.name = "conditions", .kind = J_LIST, .table = &condition_table,
                   .offset = offsetof(struct conditions, items), .offset_n = offsetof(struct conditions, n)});

int node_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct node *n = (struct node *)o;
    struct conditions conditions = {0};
    const struct json *status = json_get(root, "status");
    int r = json_decode(&spec_table, json_get(root, "spec"), "spec", n, &o->arena, err);
    if (r == 0)
        r = json_decode(&status_table, status, "status", n, &o->arena, err);
    if (r == 0)
        r = json_decode(&conditions_table, status, "status", &conditions, scratch, err);
    const struct condition *ready = condition_find(conditions.items, conditions.n, "Ready");
    if (r == 0 && ready) {
        n->ready = ready->status == CONDITION_TRUE;
        n->ready_changed_ms = ready->changed_ms;
    }
    return r;
}
