// SPDX-License-Identifier: Apache-2.0
// How many objects and bytes a store holds, as it says itself when an object does not fit.
#pragma once

#include "worker/host/object_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static inline void store_holds(struct object_store *s, size_t max, size_t n, size_t bytes)
{
    struct err err = ERR_INIT;
    const struct kept_object *o;
    char want[96];
    struct blob *b = blob_new(max, NULL);
    snprintf(want, sizeof want, ": %zu objects have %zu of the %zu bytes", n, bytes, max);
    assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b}, s, &o, &err), ERR_LIMIT);
    assert_non_null(strstr(err.msg, want));
    blob_unref(b);
}
