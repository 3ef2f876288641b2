// SPDX-License-Identifier: Apache-2.0
#include "operator/api/placementgroup.h"

#include "operator/api/condition.h"
#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"

#define SPEC(member) offsetof(struct placementgroup_spec, member)
#define STATUS(member) offsetof(struct placementgroup_status, member)
#define BUNDLE(member) offsetof(struct bundle_spec, member)
#define PLACEMENT(member) offsetof(struct node_ranges, member)

enum { BUNDLES_MAX = 10000, PLACEMENTS_MAX = 1000 };

// clang-format off
static const struct json_table bundle_table = JSON_TABLE(struct bundle_spec,
    {"count", J_I32, BUNDLE(count), .min = 1, .max = BUNDLES_MAX, .missing = 1},
    {"resources", J_TEXT, BUNDLE(resources_json), .required = true},
    {"nodeSelector", J_LABELS, BUNDLE(node_selector)});
static const struct json_table spec_table = JSON_TABLE(struct placementgroup_spec,
    GANG_SPEC_FIELDS(SPEC(gang), POD_PER_NODE),
    {"bundles", J_LIST, SPEC(bundles), .offset_n = SPEC(n_bundles), .table = &bundle_table, .required = true},
    {"template", J_TEXT, SPEC(template_json)});
static const struct json_table placement_table = JSON_TABLE(struct node_ranges,
    {"node", J_STRING, PLACEMENT(node), .required = true},
    {"bundles", J_STRING, PLACEMENT(ranges), .required = true});
static const struct json_table status_table = JSON_TABLE(struct placementgroup_status,
    {"observedGeneration", J_I64, STATUS(observed_generation)},
    {"conditions", J_LIST, STATUS(conditions), .offset_n = STATUS(n_conditions), .table = &condition_table},
    {"bundles", J_I32, STATUS(bundles)},
    {"boundBundles", J_I32, STATUS(bound_bundles)},
    {"gpus", J_I32, STATUS(gpus)},
    {"nodes", J_I32, STATUS(nodes)},
    {"incarnation", J_I32, STATUS(incarnation)},
    {"placements", J_LIST, STATUS(placements), .offset_n = STATUS(n_placements), .table = &placement_table,
     .max = PLACEMENTS_MAX});
const struct json_table placementgroup_table = JSON_TABLE(struct placementgroup,
    {"spec", J_OBJECT, offsetof(struct placementgroup, spec), .table = &spec_table, .required = true},
    {"status", J_OBJECT, offsetof(struct placementgroup, status), .table = &status_table});
// clang-format on

int placementgroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    return json_decode(&placementgroup_table, root, "", o, &o->arena, err);
}

const char *placementgroup_status_patch(const struct placementgroup_status *s, struct arena *a)
{
    return json_patch(&status_table, "status", s, a);
}

bool placementgroup_status_equal(const struct placementgroup_status *a, const struct placementgroup_status *b)
{
    return json_same(&status_table, a, b);
}
