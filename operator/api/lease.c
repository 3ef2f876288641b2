// SPDX-License-Identifier: Apache-2.0
#include "operator/api/lease.h"

#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"
#include "operator/api/meta.h"

#define LEASE(member) offsetof(struct lease, member)

static const struct json_field spec_fields[] = {
    {"holderIdentity", J_STRING, LEASE(holder), .missing_str = ""},
    {"leaseDurationSeconds", J_I32, LEASE(duration_s), .left_out = true},
    {"leaseTransitions", J_I32, LEASE(transitions)},
    {"acquireTime", J_TIME, LEASE(acquired_ms), .micro = true},
    {"renewTime", J_TIME, LEASE(renewed_ms), .micro = true},
};
static const struct json_table spec_table = JSON_TABLE(struct lease, spec_fields);

int lease_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    return json_decode(&spec_table, json_get(root, "spec"), "spec", o, &o->arena, err);
}

const char *lease_encode(const struct lease *l, struct arena *a)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    kind_write(&w, KIND_LEASE);
    writer_object(&w, "metadata");
    writer_str(&w, "name", l->obj.meta.name);
    writer_str(&w, "namespace", l->obj.meta.ns);
    writer_str_set(&w, "resourceVersion", l->obj.meta.resource_version);
    if (l->obj.meta.labels.n)
        labels_write(&w, "labels", &l->obj.meta.labels);
    if (l->obj.meta.annotations.n)
        labels_write(&w, "annotations", &l->obj.meta.annotations);
    writer_object_end(&w);
    json_encode(&spec_table, "spec", l, &w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
