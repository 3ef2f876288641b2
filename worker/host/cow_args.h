// SPDX-License-Identifier: Apache-2.0
// Arguments in the shared memory of another process that a program treats as its own, without a copy. It may write to
// them, and may keep them as long as it likes. The mapping is copy-on-write: a page that the program writes to becomes
// this process's own (pool.h). cow_args_settle() makes all other pages its own, before their owner may use the memory
// again. This costs as much as a copy, but only for arguments that outlive their call.
#pragma once

#include "common/wire/area.h"

// The limit for all arguments that outlive their calls. Above it, or if others still use the same memory, the program
// copies the arguments.
#define COW_ARGS_KEPT_MAX ((size_t)128 << 20)

struct cow_args;

// The program and the call use it. The blob of the call keeps the area until cow_args_end(). NULL: the program has to
// copy. Any thread.
struct cow_args *cow_args_new(struct area *a, const char *data, size_t len);
char *cow_args_data(const struct cow_args *s);
void cow_args_let_go(struct cow_args *s); // the program is done with it; any thread; a child of fork() only forgets it
void cow_args_settle(struct cow_args *s); // the method of the call is over; on the method's thread; accepts NULL
void cow_args_end(struct cow_args *s); // the call is over, after cow_args_settle(); on the loop's thread; accepts NULL
// A connection has ended: owners may use their memory again, although methods still run. On the loop's thread.
void cow_args_keep_all(void);
void cow_args_install(void); // once; makes children of fork() see what their parent saw
