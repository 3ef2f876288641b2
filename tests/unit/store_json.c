// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

void store_put_json(struct store *s, const char *json)
{
    const struct object *o;
    struct err err = ERR_INIT;
    if (object_decode(store_kind(s), json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    store_put(s, o);
    object_unref(o);
}
