// SPDX-License-Identifier: Apache-2.0
#include "worker/host/downloads.h"

#include <stdlib.h>
#include <string.h>

struct download {
    struct executor_job job;
    struct list link;
    struct downloads *owner; // NULL = nobody waits for the answer
    uint32_t call;
    struct region *values;
    struct blob *blob; // the whole object
    struct err err;
};

void downloads_init(struct downloads *d,
                    void (*answer)(void *ctx, uint32_t call, struct blob *blob, const struct err *), void *ctx)
{
    list_init(&d->all);
    d->answer = answer;
    d->ctx = ctx;
}

static void release(struct download *w)
{
    region_unref(w->values);
    blob_unref(w->blob);
    free(w);
}

static void run(struct executor_job *job)
{
    struct download *w = CONTAINER_OF(job, struct download, job);
    const struct region *values = w->values;
    (void)rank_device_download(values->owner, w->blob->data + w->blob->len - values->len, values->memory, values->len,
                               NULL, &w->err);
}

static void done(struct executor_job *job)
{
    struct download *w = CONTAINER_OF(job, struct download, job);
    if (w->owner) {
        list_remove(&w->link);
        w->owner->answer(w->owner->ctx, w->call, w->err.code ? NULL : blob_ref(w->blob), &w->err);
    }
    if (w->err.code == ERR_GONE)
        rank_device_lost(w->values->owner, w->err.msg);
    release(w);
}

int downloads_begin(struct downloads *d, uint32_t call, const struct objects_answer *what, struct quota *quota,
                    struct err *err)
{
    size_t len = what->len + what->values->len;
    struct blob *blob = blob_new(len, quota);
    if (!blob)
        return err_set(err, ERR_LIMIT, "no room for an object of %zu bytes, which is on the device", len);
    memcpy(blob->data, what->blob->data + what->offset, what->len);
    struct download *w = xcalloc(1, sizeof *w);
    *w = (struct download){.job = {.run = run, .done = done},
                           .owner = d,
                           .call = call,
                           .values = region_ref(what->values),
                           .blob = blob,
                           .err = ERR_INIT};
    list_append(&d->all, &w->link);
    rank_device_submit(w->values->owner, &w->job);
    return 0;
}

void downloads_end(struct downloads *d)
{
    LIST_FOREACH(l, &d->all) {
        struct download *w = CONTAINER_OF(l, struct download, link);
        list_remove(&w->link);
        w->owner = NULL;
        if (rank_device_withdraw(w->values->owner, &w->job))
            release(w);
    }
}
