// SPDX-License-Identifier: Apache-2.0
// Connects to another worker process. It blocks, so only the executor's threads may call it.
#pragma once

#include "common/base/err.h"

#include <stdatomic.h>
#include <stdint.h>

enum { DIAL_MS = 5 * 1000 };

// `at`: "10.0.0.7:41234", "[v6]:41234". Checks `canceled` several times a second. ERR_UNAVAILABLE: the message says
// why, without the address. ERR_CANCELED. *ret is non-blocking, or -1 after an error.
int dial(const char *at, const atomic_bool *canceled, int *ret, struct err *err);
// Waits for these events of poll(). Returns 0, ERR_TIMEOUT or ERR_CANCELED.
int dial_wait(int fd, short events, int64_t ms, const atomic_bool *canceled);
