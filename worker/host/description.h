// SPDX-License-Identifier: Apache-2.0
// The description of a class, as JSON. It is sent in HELLO, so the proxy knows the declared modes. --describe prints
// it.
//
//   "module": "accumulator", "class": "Accumulator",
//   "methods": [{"name": "add", "dispatch": "ONE_TO_ALL", "execute": "ALL", "doc": "adds x to the value ..."},
//               {"name": "foo", "dispatch": "SPLIT", "execute": "ALL", "split": {...}, "collect": {...}},
//               {"name": "ask", ..., "concurrency": {"group": "io", "limit": 8}}],
//   "meshes": [{"name": "train", "dims": [{"name": "pp", "size": 2}, {"name": "dp", "size": 2}]}]
//
// With roles, it has this member instead of "class" and "methods":
//
//   "roles": [{"name": "actor", "class": "Actor", "methods": [...]}, ...]
//
// `split`, `collect`, `concurrency` and `meshes` are what the constructors have published.
#pragma once

#include "common/base/json_writer.h"
#include "worker/host/roles.h"

// Writes members of an open object.
void description_write(struct json_writer *w, const struct module *m, const struct roles *roles);
