// SPDX-License-Identifier: Apache-2.0
// Calls the callbacks of a threaded client, on a second thread: if a callback waits, for example for the lock of an
// interpreter, calls are not delayed. Lines that arrive faster than they are taken are dropped and counted.
#pragma once

#include "sdk/c/client/settings.h"

enum { CALLBACKS_MAX = 1000 }; // events that wait

struct callback_thread;

// Replaces the callbacks in the settings by its own. NULL: there are none.
struct callback_thread *callback_thread_new(struct settings *s);
// Delivers all events first. If it is called on the callback thread, the rest is delivered after this call. Accepts
// NULL. The caller must hold no lock that a callback takes.
void callback_thread_free(struct callback_thread *t);
