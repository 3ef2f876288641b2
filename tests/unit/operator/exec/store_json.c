// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/exec/store_json.h"

#include "tests/unit/support/object_json.h"

void store_put_json(struct store *s, const char *json)
{
    const struct object *o = object_of_json(store_kind(s), json);
    store_put(s, o);
    object_unref(o);
}
