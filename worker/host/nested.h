// SPDX-License-Identifier: Apache-2.0
// What a call of a method needs to make calls itself. Used by the thread that runs the method, except nested_wake().
#pragma once

#include "worker/host/nested_client.h"

#include <stdatomic.h>

struct rendezvous;
struct progress;

enum { NESTED_OPEN_MAX = 1024, NESTED_WAIT_MS = 3600 * 1000 };

struct nested {
    struct nested_client *client;  // NULL: this worker cannot call
    struct rendezvous *rendezvous; // where it meets other ranks; NULL = nowhere
    struct progress *progress;     // of transfers; there is one where there is a rendezvous
    const char *role;              // of the method that runs; NULL = none
    const char *via;               // of its own call (via.h), borrowed
    size_t via_len;
    int64_t deadline; // of its own call, of the monotonic clock; 0 = none
    // private
    atomic_int wake;                 // of the thread's line, plus 1; 0 = it has not waited
    struct nested_client_line *line; // NULL: nothing was called
    uint64_t *open;                  // started, and not got
    size_t n_open;
};

void nested_wake(struct nested *n); // the call was canceled: from any thread
void nested_end(struct nested *n);  // the method has returned: what it has not got is canceled
