// SPDX-License-Identifier: Apache-2.0
// Reads the metadata of an object, and writes it at the beginning of a document.
#pragma once

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "operator/api/object.h"

// Memory for *ret is from `a`, other memory from `scratch`. brief: without labels, annotations and owner.
int meta_decode(const struct json *root, bool brief, struct arena *a, struct arena *scratch, struct meta *ret,
                struct err *err);

void env_write(struct json_writer *w, const char *name, const char *value); // a variable of a container
void owner_write(struct json_writer *w, const struct owner *o);             // ownerReferences; nothing if there is none
void kind_write(struct json_writer *w, enum kind kind);                     // apiVersion and kind
// Writes the kind and the metadata of a document to create or update. Writes only metadata that is set.
void head_write(struct json_writer *w, enum kind kind, const struct meta *m);
