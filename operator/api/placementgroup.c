// SPDX-License-Identifier: Apache-2.0
#include "operator/api/placementgroup.h"

#include "operator/api/tables.h"

#define GROUP(member) offsetof(struct placementgroup, member)

static const struct json_field status_fields[] = {
    {"observedGeneration", J_I64, GROUP(observed_generation)},
    {"conditions", J_LIST, GROUP(conditions), .offset_n = GROUP(n_conditions), .table = &condition_table},
};
static const struct json_table status_table = JSON_TABLE(struct placementgroup, status_fields);
static const struct json_field placementgroup_fields[] = {
    {"status", J_OBJECT, .table = &status_table},
};
const struct json_table placementgroup_table = JSON_TABLE(struct placementgroup, placementgroup_fields);

int placementgroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    return json_decode(&placementgroup_table, root, "", o, &o->arena, err);
}

const char *placementgroup_status_patch(const struct condition *conditions, size_t n, int64_t observed_generation,
                                        struct arena *a)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_object(&w, "status");
    writer_i64(&w, "observedGeneration", observed_generation);
    conditions_write(&w, conditions, n, true);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
