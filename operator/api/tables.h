// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: field tables, and pieces that several documents contain. The tables of the
// custom resources are public for the test that compares them with crds/.
#pragma once

#include "common/base/json_writer.h"
#include "operator/api/condition.h"
#include "operator/api/json_table.h"
#include "operator/api/object.h"
#include "operator/api/resource.h"

extern const struct json_table condition_table;
extern const struct json_table workergroup_table;
extern const struct json_table placementgroup_table;
extern const char *const strategy_names[], *const pod_per_names[];

// Decoding of one kind, called by object_decode(). `o` is zeroed memory of kind_size(); its metadata is there already.
// What is kept comes from o->arena, what is only looked at from `scratch`.
int pod_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int node_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int service_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int endpointslice_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int lease_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int workergroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
int placementgroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);

bool pod_is_foreign(const struct json *root); // no label cadre.dev/group
// The one node that every required node affinity term names; NULL if there is none.
int pod_pin_decode(const struct json *spec, struct arena *scratch, const char **ret, struct err *err);

void labels_write(struct json_writer *w, const char *key, const struct labels *l);
void kind_write(struct json_writer *w, enum kind kind); // apiVersion and kind
// Of a document to create: which kind it is, and of its metadata the name, namespace, labels and owner.
void head_write(struct json_writer *w, enum kind kind, const struct meta *m);
void owner_write(struct json_writer *w, const struct owner *o); // ownerReferences; nothing if there is none
