// SPDX-License-Identifier: Apache-2.0
// Tells a store that a watch has seen the deletion of the object with this name. Unknown names are fine.
#pragma once

#include "operator/runtime/store.h"

static inline void store_gone(struct store *s, const char *ns, const char *name)
{
    const struct object *o = store_get(s, ns, name);
    if (o)
        store_deleted(s, o);
}
