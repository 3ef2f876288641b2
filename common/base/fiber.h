// SPDX-License-Identifier: Apache-2.0
// A fiber is a function with a stack of its own. It stops in the middle when it has worked enough, and continues later,
// so long work on bytes does not delay other work. It is still written as plain functions, which call fiber_spend()
// where they work; outside of a fiber, this call does nothing. While a fiber waits, everything else may change: its
// function may use only what it holds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { FIBER_STEP = 64 << 10 }; // bytes that are worked on without a stop

struct fiber;

extern _Thread_local struct fiber *fiber_running; // NULL = none

struct fiber *fiber_new(void (*fn)(void *ctx), void *ctx);
// Continues until the function has spent `units` more, or has returned. True: it has returned, and the fiber is freed.
// Call it only outside of fibers, in the thread that made the fiber.
bool fiber_run(struct fiber *f, size_t units);

void fiber_spent(size_t units);

// The caller has done work that takes about as long as reading `units` bytes. Functions call it at least once per
// FIBER_STEP bytes.
static inline void fiber_spend(size_t units)
{
    if (fiber_running)
        fiber_spent(units);
}

// Long loops and copies, in steps

static inline const char *fiber_step(const char *p, const char *end) // the end of the step that begins at p
{
    return (size_t)(end - p) > FIBER_STEP ? p + FIBER_STEP : end;
}

// For the end of a step: true if there is another step.
static inline bool fiber_goes_on(const char *p, const char *stop, const char *end)
{
    if (p < stop || p == end)
        return false;
    fiber_spend(FIBER_STEP);
    return true;
}

void fiber_copy_long(void *to, const void *from, size_t len);
void fiber_zero_long(void *at, size_t len);
size_t fiber_strlen(const char *s);
bool fiber_equal(const void *a, const void *b, size_t len);

static inline void fiber_copy(void *to, const void *from, size_t len)
{
    if (len > FIBER_STEP)
        fiber_copy_long(to, from, len);
    else if (len)
        memcpy(to, from, len);
}

static inline void fiber_zero(void *at, size_t len)
{
    if (len > FIBER_STEP)
        fiber_zero_long(at, len);
    else
        memset(at, 0, len);
}
