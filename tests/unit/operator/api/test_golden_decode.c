// SPDX-License-Identifier: Apache-2.0
// tests/golden/decode/<kind>-<case>/{in.json,want.txt}: the message about an object that cannot be read.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object.h"
#include "operator/api/object_decode.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <strings.h>

static char *decode_case(const char *name, const char *in, size_t len)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        size_t n = strlen(kind_info(kind)->kind);
        if (strncasecmp(name, kind_info(kind)->kind, n) != 0 || name[n] != '-')
            continue;
        int r = object_decode(kind, in, len, &o, &err);
        object_unref(o);
        return r < 0 ? xasprintf("%s: %s\n", err_name(r), err.msg) : xstrdup("OK\n");
    }
    return xasprintf("no kind is named \"%s\"\n", name);
}

static void bad_objects_are_answered_with_the_path(void **state)
{
    (void)state;
    assert_int_equal(golden_run("tests/golden/decode", "in.json", "want.txt", decode_case), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_objects_are_answered_with_the_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
