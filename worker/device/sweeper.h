// SPDX-License-Identifier: Apache-2.0
// Frees memory of the device on a thread of its own. The driver waits there until the device has done everything, also
// what it does for others, and it may never do that.
#pragma once

#include "worker/device/device.h"

enum { SWEEPER_LIMIT_MS = 20 * 1000 };

struct sweeper;

struct sweeper *sweeper_new(void);
// From now on memory that is dropped stays until the process ends. Accepts NULL.
void sweeper_close(struct sweeper *s);
// Closes, and waits for the driver, SWEEPER_LIMIT_MS at most. Returns false if the driver is still freeing memory: then
// the sweeper and the device must stay. Accepts NULL.
bool sweeper_free(struct sweeper *s);

// These are for any thread.

// Frees the memory soon. The device must outlive the sweeper. Accepts memory that is NULL.
void sweeper_drop(struct sweeper *s, struct device *d, void *memory);
// Waits until all dropped memory is freed. Returns false if it is not within this time, or if the driver has been
// freeing for longer than SWEEPER_LIMIT_MS.
bool sweeper_wait(struct sweeper *s, int64_t limit_ms);
// Call this inside the device. If there is no room, waits for memory that is being freed, as sweeper_wait() does.
int sweeper_alloc(struct sweeper *s, struct device *d, size_t size, int64_t limit_ms, void **ret, struct err *err);
