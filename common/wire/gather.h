// SPDX-License-Identifier: Apache-2.0
// A message in several parts of memory, for sendmsg(): long parts stay in their blobs.
#pragma once

#include "common/wire/blob.h"

#include <sys/uio.h>

#define GATHER_MIN ((size_t)4 << 10) // shorter parts are copied: they are not worth their own segment

enum { GATHER_PIECES = 32 };

struct gather {
    size_t len; // bytes that are left, in iov[at] to iov[n - 1]
    unsigned at, n;
    struct iovec iov[GATHER_PIECES];
    struct blob *blobs[GATHER_PIECES]; // kept until it is sent; NULL = memory of the caller
};

void gather_init(struct gather *g);
void gather_done(struct gather *g);        // releases the parts that were not sent
bool gather_takes(const struct gather *g); // there is room for a blob and a run after it
void gather_add(struct gather *g, const void *data, size_t len, struct blob *blob); // takes a reference
void gather_lead(struct gather *g, size_t n);            // n bytes more, before the first segment
void gather_sent(struct gather *g, size_t n);            // the first n of the bytes that are left
void gather_own(struct gather *g, const struct blob *b); // copies the bytes that are left of it, and releases it
