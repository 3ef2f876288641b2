// SPDX-License-Identifier: Apache-2.0
// A worker process from its first object to its end. It creates the objects of its roles, serves the proxies, and stops
// when it is told to. Used by cadre-worker, and by programs that run their methods themselves (program.c).
#pragma once

#include "worker/host/nested_client.h"
#include "worker/host/proxies.h"
#include "worker/host/roles.h"

enum { HOST_EXIT_MODULE = 65, HOST_EXIT_CONSTRUCTOR = 66, HOST_EXIT_DEVICE = 67 };

struct host {
    struct host_options options;
    struct cadre_worker worker;
    struct module module;
    struct roles roles;
    bool pulled;        // the program runs the methods: method_executor_pull()
    const char *awaits; // as in cadre_host_options
    // Called on the thread of host_run(); each may be NULL. on_begin: the loop and the executor exist. on_created: all
    // objects exist, and calls may come from now on. on_end: no call comes any more, and the loop and the executor
    // still exist.
    void (*on_begin)(void *ctx);
    void (*on_created)(void *ctx);
    void (*on_end)(void *ctx);
    void *ctx;
    // private, except for the callbacks
    struct loop *loop;
    struct method_executor *executor;
    struct nested_client *client;
    struct objects *objects;
    struct rank_device *device;
    struct rendezvous *rendezvous;
    struct progress *progress;
    struct archive_fetch *archive; // NULL = it awaits no archive
    struct proxies *proxies;       // NULL while the constructor runs
    struct loop_signal *signals[2];
    bool stopping;
    int exit_code;
};

// Returns the exit code after the end. Errors are printed. The caller has set the first members and read the roles.
int host_run(struct host *h);
void host_say(const struct host *h, const char *what, const char *detail); // prints a line on stderr, with the rank
