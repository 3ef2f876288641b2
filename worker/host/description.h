// SPDX-License-Identifier: Apache-2.0
// What a class can do, as JSON: sent in HELLO, so that the proxy knows the declared modes, and printed by --describe.
//
//   "module": "accumulator", "class": "Accumulator",
//   "methods": [{"name": "add", "dispatch": "ONE_TO_ALL", "execute": "ALL", "doc": "adds x to the value ..."}]
#ifndef CADRE_HOST_DESCRIPTION_H
#define CADRE_HOST_DESCRIPTION_H

#include "common/base/json_writer.h"
#include "worker/host/module.h"

void description_write(struct json_writer *w, const struct module *m, const cadre_class *class); // members

#endif
