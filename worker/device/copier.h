// SPDX-License-Identifier: Apache-2.0
// Copies between any memory of the host and the device, through pinned memory: while the device moves one piece, the
// CPU copies the next one. A copier has a stream of its own, which the legacy default stream waits for, and the other
// way round; not if it is `apart`. One thread uses a copier at a time, inside of the device.
#pragma once

#include "worker/device/device.h"

struct copier;

enum { COPIER_LIMIT_MS = 20 * 1000 }; // of waits that belong to no call, which could end them

// The device outlives it. Pinned memory comes with the first copy that needs it.
int copier_new(struct device *d, bool apart, struct copier **ret, struct err *err);
// Waits for the stream. ERR_TIMEOUT: it is not done, and what it uses stays until the process ends. Accepts NULL.
int copier_free(struct copier *c, int64_t limit_ms, struct err *err);
void *copier_stream(const struct copier *c);
bool copier_is_apart(const struct copier *c);
bool copier_is_late(const struct copier *c); // the last wait has come to its limit: another one would, too

// Returns when `from` may change. The last pieces are still on the stream.
int copier_upload(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                  const atomic_bool *canceled, struct err *err);
// Returns when all of it is there. It comes behind what is on the stream.
int copier_download(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                    const atomic_bool *canceled, struct err *err);
// What comes later on the copier's stream comes after all that is on the other one now.
int copier_join(struct copier *c, void *stream, struct err *err);
// Waits until all of the stream is done. All three: ERR_TIMEOUT after limit_ms; ERR_CANCELED when *canceled (may be
// NULL) is true.
int copier_wait(struct copier *c, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
