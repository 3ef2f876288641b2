// SPDX-License-Identifier: Apache-2.0
// Copies between any memory of the host and the device, through pinned memory: while the device moves one piece, the
// CPU copies the next one. A copier has a stream of its own. That stream and the legacy default stream wait for each
// other, unless the copier is `apart`. One thread uses a copier at a time, inside of the device.
#pragma once

#include "worker/device/device.h"

struct copier;

enum { COPIER_LIMIT_MS = 20 * 1000 }; // for waits that belong to no call

// The device must outlive the copier. The first copy that needs pinned memory allocates it.
int copier_new(struct device *d, bool apart, struct copier **ret, struct err *err);
// Waits for the stream. ERR_TIMEOUT: it is not done, so its memory stays until the process ends. Accepts NULL.
int copier_free(struct copier *c, int64_t limit_ms, struct err *err);
void *copier_stream(const struct copier *c);
bool copier_is_apart(const struct copier *c);
bool copier_is_late(const struct copier *c); // the last wait has reached its limit, so another one would, too

// Returns when `from` may change. The last pieces are still on the stream.
int copier_upload(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                  const atomic_bool *canceled, struct err *err);
// Returns when all bytes are there. The copy comes after the work that is on the stream.
int copier_download(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                    const atomic_bool *canceled, struct err *err);
// Later work on the stream of the copier waits for all work that is on the other stream now.
int copier_join(struct copier *c, void *stream, struct err *err);
// Waits until all work on the stream is done. This function and the two copies fail with ERR_TIMEOUT after limit_ms,
// and with ERR_CANCELED when *canceled (may be NULL) becomes true.
int copier_wait(struct copier *c, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
