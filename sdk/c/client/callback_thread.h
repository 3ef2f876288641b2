// SPDX-License-Identifier: Apache-2.0
// Calls the callbacks of a threaded client, on a second thread: if a callback waits, for example for the lock of an
// interpreter, calls are not delayed. Lines that arrive faster than they are taken are dropped and counted.
#pragma once

#include "sdk/c/client/settings.h"

enum { CALLBACKS_MAX = 1000 }; // events that wait

struct callback_thread;

// Puts itself in the place of the callbacks. NULL: there are none.
struct callback_thread *callback_thread_new(struct settings *s);
// What has come is told first; on its own thread, that goes on behind this. Accepts NULL. No lock may be held that a
// callback takes.
void callback_thread_free(struct callback_thread *t);
