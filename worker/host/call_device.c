// SPDX-License-Identifier: Apache-2.0
#include "worker/host/call_device.h"

#include "common/base/mem.h"

#include <stdlib.h>

int call_device_enter(struct call_device *d, struct err *err)
{
    int r = rank_device_enter(d->rank, err);
    if (r == 0 && !d->copier && (r = rank_device_lend(d->rank, false, &d->copier, err)) < 0)
        rank_device_leave(d->rank);
    return r;
}

void call_device_leave(struct call_device *d)
{
    rank_device_leave(d->rank);
}

static int upload(struct call_device *d, struct region **at, const void *from, size_t len, const atomic_bool *canceled,
                  struct err *err)
{
    struct region *g;
    int r = region_new(d->rank, len, &g, err);
    if (r < 0)
        return r;
    r = copier_upload(d->copier, g->memory, from, len, DEVICE_NO_LIMIT, canceled, err);
    if (r == 0)
        *at = g;
    else
        region_unref(g);
    return r;
}

int call_device_upload(struct call_device *d, size_t i, size_t n, const void *from, size_t len,
                       const atomic_bool *canceled, void **ret, struct err *err)
{
    int r = 0;
    if (!d->views) {
        d->views = xcalloc(n, sizeof *d->views);
        d->n_views = n;
    }
    if (!d->views[i] && (r = call_device_enter(d, err)) == 0) {
        r = upload(d, &d->views[i], from, len, canceled, err);
        call_device_leave(d);
    }
    *ret = r == 0 ? d->views[i]->memory : NULL;
    return r;
}

int call_device_download(struct call_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err)
{
    int r = call_device_enter(d, err);
    if (r < 0)
        return r;
    r = copier_download(d->copier, to, from, len, DEVICE_NO_LIMIT, canceled, err);
    call_device_leave(d);
    return r;
}

void call_device_drop_result(struct call_device *d)
{
    region_unref(TAKE_PTR(d->result));
}

int call_device_room(struct call_device *d, size_t len, struct err *err)
{
    int r = call_device_enter(d, err);
    if (r < 0)
        return r;
    call_device_drop_result(d);
    r = region_new(d->rank, len, &d->result, err);
    call_device_leave(d);
    return r;
}

static int copy_args(struct call_device *d, const atomic_bool *canceled, struct region **ret, struct err *err)
{
    struct region *own;
    int r = region_new(d->rank, d->args->len, &own, err);
    if (r < 0)
        return r;
    r = device_copy(rank_device_of(d->rank), own->memory, d->args->memory, own->len, copier_stream(d->copier), err);
    if (r == 0)
        r = copier_wait(d->copier, DEVICE_NO_LIMIT, canceled, err);
    if (r == 0)
        *ret = own;
    else
        region_unref(own);
    return r;
}

int call_device_own_args(struct call_device *d, const atomic_bool *canceled, struct region **ret, struct err *err)
{
    if (region_is_ours(d->args)) {
        *ret = region_ref(d->args);
        return 0;
    }
    int r = call_device_enter(d, err);
    if (r < 0)
        return r;
    r = copy_args(d, canceled, ret, err);
    call_device_leave(d);
    return r;
}

int call_device_settle(struct call_device *d, bool share, const atomic_bool *canceled, struct err *err)
{
    int r = call_device_enter(d, err);
    if (r < 0)
        return r;
    r = copier_join(d->copier, NULL, err);
    if (r == 0)
        r = copier_wait(d->copier, DEVICE_NO_LIMIT, canceled, err);
    if (r == 0 && share)
        region_share(d->result);
    call_device_leave(d);
    return r;
}

void call_device_done(struct call_device *d)
{
    if (!d->rank)
        return;
    for (size_t i = 0; i < d->n_views; i++)
        region_unref(d->views[i]);
    free(TAKE_PTR(d->views));
    region_unref(TAKE_PTR(d->result));
    region_unref(TAKE_PTR(d->copied));
    rank_device_give(d->rank, TAKE_PTR(d->copier));
}
