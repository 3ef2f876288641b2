// SPDX-License-Identifier: Apache-2.0
// Answers of the operator or kubectl as a cJSON tree, for fields that are read. Values that are passed on or shown as
// they came stay text, because cJSON keeps numbers as doubles (docs/adr/0005).
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <cjson/cJSON.h>
#include <stdint.h>

cJSON *document_read(const struct buf *text, struct err *err); // NULL: ERR_INVALID. For cJSON_Delete()
const cJSON *document_get(const cJSON *of, const char *name);  // NULL: no such member, it is null, or no object
const char *document_str(const cJSON *of, const char *name);   // a member; NULL: it is not a string
int64_t document_i64(const cJSON *of, const char *name);       // a member; 0: it is not an integer
bool document_integer(const cJSON *v, int64_t *ret); // of a value; false: it is not an integer, *ret is as before
size_t document_count(const cJSON *list);            // of its elements; 0: NULL
bool document_str_is(const cJSON *of, const char *name, const char *s);
#define DOCUMENT_FOREACH(v, list) for (const cJSON *v = (list) ? (list)->child : NULL; v; v = v->next)

static inline void document_free(cJSON **d)
{
    cJSON_Delete(*d);
}
