// SPDX-License-Identifier: Apache-2.0
#include "operator/local/container.h"

#include "operator/api/json_table.h"
#include "operator/api/resource.h"

#include <string.h>

struct one {
    struct container container;
    struct resources requests, limits;
};

struct template_view {
    struct one *items;
    size_t n;
};

#define VARIABLE(field) offsetof(struct container_variable, field)
#define ONE(field) offsetof(struct one, field)

// clang-format off
static const struct json_table variable_table = JSON_TABLE(struct container_variable,
    {"name", J_STRING, VARIABLE(name), .required = true},
    {"value", J_STRING, VARIABLE(value)});
static const struct json_table resources_table = JSON_TABLE(struct one,
    {"requests", J_QUANTITIES, ONE(requests)},
    {"limits", J_QUANTITIES, ONE(limits)});
static const struct json_table container_table = JSON_TABLE(struct one,
    {"command", J_STRINGS, ONE(container.command), ONE(container.n_command)},
    {"args", J_STRINGS, ONE(container.args), ONE(container.n_args)},
    {"env", J_LIST, ONE(container.env), ONE(container.n_env), .table = &variable_table},
    {"resources", J_OBJECT, .table = &resources_table});
static const struct json_table template_table = JSON_TABLE(struct template_view,
    {"containers", J_LIST, offsetof(struct template_view, items), offsetof(struct template_view, n),
     .table = &container_table});
// clang-format on

int container_read(const char *template, struct arena *a, struct container *ret, struct err *err)
{
    struct template_view view = {0};
    struct json *root = NULL;
    *ret = (struct container){0};
    if (!template)
        return 0;
    int r = json_parse(template, strlen(template), NULL, a, &root, err);
    if (r == 0)
        r = json_decode(&template_table, json_get(root, "spec"), "spec.template.spec", &view, a, err);
    if (r == 0 && view.n)
        *ret = view.items->container;
    for (size_t i = 0; i < view.n && r == 0; i++) {
        int64_t asked = resources_get(&view.items[i].requests, RESOURCE_CPU);
        ret->cpu_milli = amount_add(ret->cpu_milli, asked ? asked : resources_get(&view.items[i].limits, RESOURCE_CPU));
    }
    return r;
}
