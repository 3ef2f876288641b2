// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/store_json.h"

#include "tests/unit/support/object_json.h"

void store_put_json(struct store *s, const char *json)
{
    const struct object *o = object_of_json(store_kind(s), json);
    store_put(s, o);
    object_unref(o);
}

void stores_new(struct store *stores[KIND_COUNT])
{
    static const enum kind kinds[] = {KIND_POD,           KIND_NODE,        KIND_SERVICE,
                                      KIND_ENDPOINTSLICE, KIND_WORKERGROUP, KIND_PLACEMENTGROUP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        stores[kinds[i]] = store_new(kinds[i]);
}

void stores_free(struct store *stores[KIND_COUNT])
{
    for (int i = 0; i < KIND_COUNT; i++)
        store_free(stores[i]);
}
