// SPDX-License-Identifier: Apache-2.0
// Arguments in the shared memory of another process that a program treats as its own, without a copy. It may write to
// them, and may keep them as long as it likes. When the program writes to a page, the page becomes this process's own
// (pool.h). stretch_settle() makes all other pages its own, before their owner may use the memory again. This costs as
// much as a copy, but only for arguments that outlive their call.
#pragma once

#include "common/wire/area.h"

// The limit for all arguments that outlive their calls. Above it, or if others still use the same memory, the program
// copies the arguments.
#define STRETCH_KEPT_MAX ((size_t)128 << 20)

struct stretch;

// The program and the call hold it. The blob of the call keeps the area until stretch_end(). NULL: the program has to
// copy. Any thread.
struct stretch *stretch_new(struct area *a, const char *data, size_t len);
char *stretch_data(const struct stretch *s);
void stretch_let_go(struct stretch *s); // the program is done with it; any thread; a child of fork() only forgets it
void stretch_settle(struct stretch *s); // the method of the call is over; on the method's thread; accepts NULL
void stretch_end(struct stretch *s);    // the call is over, after stretch_settle(); on the loop's thread; accepts NULL
// A connection has ended: owners may use their memory again, although methods still run. On the loop's thread.
void stretch_keep_all(void);
void stretch_install(void); // once; makes children of fork() see what their parent saw
