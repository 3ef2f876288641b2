// SPDX-License-Identifier: Apache-2.0
// Connects to another worker process. It blocks, so only the executor's threads may call it.
#pragma once

#include "common/base/err.h"

#include <stdatomic.h>
#include <stdint.h>

enum { DIAL_MS = 5 * 1000 };

// `at`: "10.0.0.7:41234", "[v6]:41234". `canceled` is looked at several times a second. ERR_UNAVAILABLE: why not,
// without the address; ERR_CANCELED. *ret is non-blocking, -1 where there is none.
int dial(const char *at, const atomic_bool *canceled, int *ret, struct err *err);
// 0: ready for these events of poll(). ERR_TIMEOUT, ERR_CANCELED.
int dial_wait(int fd, short events, int64_t ms, const atomic_bool *canceled);
