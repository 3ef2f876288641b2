// SPDX-License-Identifier: Apache-2.0
// Objects with values on the device that a client gets (object.get). They are copied to the host on a thread beside the
// loop, then the call is answered. There is one for each connection.
#pragma once

#include "common/base/list.h"
#include "worker/host/objects.h"

struct downloads {
    struct list all;
    // Called from the loop, once for each download. `blob`: the object, and the callee gets the reference; NULL: `err`
    // says why there is none.
    void (*answer)(void *ctx, uint32_t call, struct blob *blob, const struct err *err);
    void *ctx;
};

void downloads_init(struct downloads *d,
                    void (*answer)(void *ctx, uint32_t call, struct blob *blob, const struct err *), void *ctx);
// `what` has values on the device. Its bytes count for the quota. ERR_LIMIT: the quota has no room for them.
int downloads_begin(struct downloads *d, uint32_t call, const struct objects_answer *what, struct quota *quota,
                    struct err *err);
void downloads_end(struct downloads *d); // nobody waits for the answers any more
