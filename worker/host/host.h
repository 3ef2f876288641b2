// SPDX-License-Identifier: Apache-2.0
// A worker process from its first object to its end: creates the objects of its roles, serves the proxies, and stops
// when told to. Used by cadre-worker, and by programs that run their methods themselves (program.c).
#pragma once

#include "worker/host/nested_client.h"
#include "worker/host/proxies.h"
#include "worker/host/roles.h"

enum { HOST_EXIT_MODULE = 65, HOST_EXIT_CONSTRUCTOR = 66, HOST_EXIT_DEVICE = 67 };

struct host {
    struct options options;
    struct cadre_worker worker;
    struct module module;
    struct roles roles;
    bool pulled;        // the program runs the methods: executor_pull()
    const char *awaits; // as in cadre_host_options
    // From the thread of host_run(); each may be NULL: there is a loop and an executor; all objects are made, and calls
    // may come from now on; no call comes any more, before loop and executor go.
    void (*on_begin)(void *ctx);
    void (*on_created)(void *ctx);
    void (*on_end)(void *ctx);
    void *ctx;
    // private, but for the callbacks
    struct loop *loop;
    struct executor *executor;
    struct nested_client *client;
    struct objects *objects;
    struct rank_device *device;
    struct loop_timer *lost; // the GPU is, and so long this process has to end
    struct rendezvous *rendezvous;
    struct progress *progress;
    struct archive_seeker *seeker; // NULL: it awaits nothing
    struct proxies *proxies;       // NULL while the constructor runs
    struct loop_signal *signals[2];
    bool stopping;
    int exit_code;
};

// Returns the exit code when all is over; what went wrong was said. The first members are set, and the roles read.
int host_run(struct host *h);
void host_say(const struct host *h, const char *what, const char *detail); // a line on stderr, with the rank
