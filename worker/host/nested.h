// SPDX-License-Identifier: Apache-2.0
// The data with which a call of a method makes further calls. Used by the thread that runs the method, except for
// nested_wake().
#pragma once

#include "worker/host/nested_client.h"

#include <stdatomic.h>

struct rendezvous;
struct progress;

enum { NESTED_OPEN_MAX = 1024, NESTED_WAIT_MS = 3600 * 1000 };

struct nested {
    struct nested_client *client;  // NULL = this worker cannot make calls
    struct rendezvous *rendezvous; // for communicators; NULL = none
    struct progress *progress;     // of transfers; it exists if there is a rendezvous
    const char *role;              // of the method that runs; NULL = none
    const char *via;               // the waiting methods of its own call (via.h), borrowed
    size_t via_len;
    int64_t deadline; // of its own call, on the monotonic clock; 0 = none
    // private
    atomic_int wake;                 // the eventfd of the thread's line, plus 1; 0 = the method has made no call
    struct nested_client_line *line; // NULL = the method has made no call
    uint64_t *open;                  // calls that were started, and whose results were not taken
    size_t n_open;
};

void nested_wake(struct nested *n); // the call was canceled; on any thread
void nested_end(struct nested *n);  // the method has returned: cancels the calls whose results it has not taken
