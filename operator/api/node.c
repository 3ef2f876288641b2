// SPDX-License-Identifier: Apache-2.0
#include "operator/api/node.h"

#include "operator/api/condition.h"
#include "operator/api/json_table.h"

#define NODE(member) offsetof(struct node, member)
#define TAINT(member) offsetof(struct taint, member)
#define CONDITIONS(member) offsetof(struct condition_list, member)

// clang-format off
static const struct json_table taint_table = JSON_TABLE(struct taint,
    {"key", J_STRING, TAINT(key)},
    {"value", J_STRING, TAINT(value)},
    {"effect", J_STRING, TAINT(effect)});
static const struct json_table spec_table = JSON_TABLE(struct node,
    {"taints", J_LIST, NODE(taints), .offset_n = NODE(n_taints), .table = &taint_table},
    {"unschedulable", J_BOOL, NODE(unschedulable)});
static const struct json_table status_table = JSON_TABLE(struct node,
    {"allocatable", J_QUANTITIES, NODE(allocatable), .offered = true});

struct condition_list {
    struct condition *items;
    size_t n;
};
static const struct json_table conditions_table = JSON_TABLE(struct condition_list,
    {"conditions", J_LIST, CONDITIONS(items), .offset_n = CONDITIONS(n), .table = &condition_table});
// clang-format on

int node_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct node *n = (struct node *)o;
    struct condition_list conditions = {0};
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
