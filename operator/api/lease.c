// SPDX-License-Identifier: Apache-2.0
#include "operator/api/lease.h"

#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"
#include "operator/api/meta.h"

#define LEASE(member) offsetof(struct lease, member)

// clang-format off
static const struct json_table spec_table = JSON_TABLE(struct lease,
    {"holderIdentity", J_STRING, LEASE(holder), .missing_str = ""},
    {"leaseDurationSeconds", J_I32, LEASE(duration_s), .left_out = true},
    {"leaseTransitions", J_I32, LEASE(transitions)},
    {"acquireTime", J_TIME, LEASE(acquired_ms), .micro = true},
    {"renewTime", J_TIME, LEASE(renewed_ms), .micro = true});
// clang-format on

int lease_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    return json_decode(&spec_table, json_get(root, "spec"), "spec", o, &o->arena, err);
}

const char *lease_encode(const struct lease *l, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    head_write(&w, KIND_LEASE, &l->obj.meta);
    json_encode(&spec_table, "spec", l, &w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
