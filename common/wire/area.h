// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share: a pool of this process, or the mapped pool of another one. Blobs in it hold
// a reference to it. The owner is told when a blob is no longer needed. One thread, as for blobs.
#pragma once

#include "common/base/list.h"

#include <stddef.h>
#include <stdint.h>

struct area {
    uint32_t id; // in this process, never used twice
    int fd;      // with which others may open it
    const char *base;
    size_t size;
    char *own; // of another process's: the same once more, to be written to (memory.h); NULL = none
    // A blob is not needed any more; NULL: nobody wants to know. `tag` is what it was made with.
    void (*give)(struct area *a, const char *data, uint32_t tag);
    void (*end)(struct area *a); // nobody refers to it: unmaps it, and frees the struct
    void *ctx;
    // private
    unsigned refs;
    struct list watches;
};

struct area_watch { // somebody who is told that nobody refers to it any more, before `end`
    struct list link;
    void (*gone)(struct area_watch *w);
};

void area_init(struct area *a); // one reference; the rest was set before
struct area *area_ref(struct area *a);
void area_unref(struct area *a);                       // accepts NULL
void area_watch(struct area *a, struct area_watch *w); // until list_remove(&w->link)
