// SPDX-License-Identifier: Apache-2.0
#include "operator/api/placementgroup.h"

#include "operator/api/tables.h"

#define GROUP(member) offsetof(struct placementgroup, member)

static JSON_TABLE(status_table, struct placementgroup,
                  {.name = "observedGeneration", .kind = J_I64, .offset = GROUP(observed_generation)},
                  {.name = "conditions", .kind = J_LIST, .table = &condition_table, .offset = GROUP(conditions),
                   .offset_n = GROUP(n_conditions)});
JSON_TABLE(placementgroup_table, struct placementgroup,
           {.name = "status", .kind = J_OBJECT, .table = &status_table});

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
