// SPDX-License-Identifier: Apache-2.0
// Arguments in the shared memory of another process that a program has as its own, although they were not copied: it
// may write to them, and they stay as long as it likes. A page is this process's own from the moment on at which it
// writes there (pool.h); of all others stretch_settle() makes it so, before their owner may use the memory again. That
// costs as much as a copy, but only of arguments that outlive their call.
#pragma once

#include "common/wire/area.h"

// Of arguments that outlive their calls. Beyond that, and where others still lie in the same place, the program copies.
#define STRETCH_KEPT_MAX ((size_t)128 << 20)

struct stretch;

// Held by the program and by the call, whose blob keeps the area until stretch_end(). NULL: it is to copy. Any thread.
struct stretch *stretch_new(struct area *a, const char *data, size_t len);
char *stretch_data(const struct stretch *s);
void stretch_let_go(struct stretch *s); // the program, on any thread; in a child of fork() it only forgets
void stretch_settle(struct stretch *s); // the call: its method is over; on the method's thread; accepts NULL
void stretch_end(struct stretch *s);    // the call, after that, on the loop's thread; accepts NULL
// A connection has ended: owners may use their memory again, although methods run on. On the loop's thread.
void stretch_keep_all(void);
void stretch_install(void); // once: children of fork() see what their parent saw
