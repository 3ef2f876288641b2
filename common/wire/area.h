// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share: a pool of this process, or the mapped pool of another one. Blobs in it have
// a reference to it. The owner is told when a blob is no longer needed. One thread, as for blobs.
#pragma once

#include "common/base/list.h"

#include <stddef.h>
#include <stdint.h>

struct area {
    uint32_t id; // in this process, never used twice
    int fd;      // other processes may open it
    const char *base;
    size_t size;
    char *own; // of another process's pool: the same memory mapped again, for writing (memory.h); NULL = none
    // Called when a blob is no longer needed; may be NULL. `tag` is the blob's tag.
    void (*give)(struct area *a, const char *data, uint32_t tag);
    void (*end)(struct area *a); // no reference is left: unmaps it, and frees the struct
    void *ctx;
    // private
    unsigned refs;
    struct list watches;
};

struct area_watch { // is told, before `end`, that no reference is left
    struct list link;
    void (*gone)(struct area_watch *w);
};

void area_init(struct area *a); // starts with one reference; all other fields must be set before
struct area *area_ref(struct area *a);
void area_unref(struct area *a);                       // accepts NULL
void area_watch(struct area *a, struct area_watch *w); // until list_remove(&w->link)
