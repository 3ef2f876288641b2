// SPDX-License-Identifier: Apache-2.0
// The progress of the transfers of weights to this process. Methods receive the bytes on their threads. The loop's
// thread tells the proxies every PROGRESS_MS, and sends 0 of 0 once at the end. docs/protocol.md, "Transfers of
// weights".
#pragma once

#include "common/base/list.h"
#include "common/base/loop.h"
#include "worker/transfer/mover.h"

enum { PROGRESS_MS = 500, PROGRESS_TEXT_SIZE = 96 };

struct progress;

struct progress_part { // one for each transfer
    struct mover_progress bytes;
    struct list link;
};

// `tell`: called on the loop's thread with the body of a PROGRESS record for all proxies.
struct progress *progress_new(struct loop *loop, void (*tell)(void *ctx, const char *body, size_t len), void *ctx);
void progress_free(struct progress *p); // on the loop's thread, when no other thread uses it; accepts NULL

// On any other thread.
void progress_begin(struct progress *p, struct progress_part *part);
void progress_end(struct progress *p, struct progress_part *part);
