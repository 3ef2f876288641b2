// SPDX-License-Identifier: Apache-2.0
// Objects with values on the device that a client gets (object.get): they are copied to the host beside the loop, then
// the call is answered. One for each connection.
#pragma once

#include "common/base/list.h"
#include "worker/host/objects.h"

struct downloads {
    struct list all;
    // From the loop, once a download: the object, which the callee gets a reference of; or NULL and an error.
    void (*answer)(void *ctx, uint32_t call, struct blob *blob, const struct err *err);
    void *ctx;
};

void downloads_init(struct downloads *d,
                    void (*answer)(void *ctx, uint32_t call, struct blob *blob, const struct err *), void *ctx);
// `what` has values on the device. Its bytes count for the quota. ERR_LIMIT: it has no room for them.
int downloads_begin(struct downloads *d, uint32_t call, const struct objects_answer *what, struct quota *quota,
                    struct err *err);
void downloads_end(struct downloads *d); // nobody wants an answer any more
