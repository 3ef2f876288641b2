// SPDX-License-Identifier: Apache-2.0
#include "common/wire/area.h"

#include "common/base/small.h"
#include "common/wire/share.h"

#include <stdatomic.h>

void area_init(struct area *a)
{
    static atomic_uint last;
    a->id = atomic_fetch_add(&last, 1) + 1;
    a->refs = 1;
    list_init(&a->told);
}

struct area *area_ref(struct area *a)
{
    a->refs++;
    return a;
}

void area_unref(struct area *a)
{
    if (!a || --a->refs)
        return;
    share_forget(a);
    a->end(a);
}

struct blob *area_blob(struct area *a, const char *data, size_t len, uint32_t tag)
{
    struct blob *b = small_new(sizeof *b); // as blob.c gives it back
    *b = (struct blob){.refs = 1, .len = len, .data = (char *)data, .area = area_ref(a), .tag = tag};
    return b;
}
