// SPDX-License-Identifier: Apache-2.0
#include "common/wire/area.h"

#include <stdatomic.h>

void area_init(struct area *a)
{
    static atomic_uint last;
    a->id = atomic_fetch_add(&last, 1) + 1;
    a->refs = 1;
    list_init(&a->watches);
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
    LIST_FOREACH(l, &a->watches) {
        struct area_watch *w = CONTAINER_OF(l, struct area_watch, link);
        w->gone(w);
    }
    a->end(a);
}

void area_watch(struct area *a, struct area_watch *w)
{
    list_append(&a->watches, &w->link);
}
