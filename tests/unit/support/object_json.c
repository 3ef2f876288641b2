// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/object_json.h"

#include "operator/api/object_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

const struct object *object_of_json(enum kind kind, const char *json)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(kind, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return o;
}
