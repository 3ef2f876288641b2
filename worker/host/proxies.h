// SPDX-License-Identifier: Apache-2.0
// All proxies that this worker serves, with a session for each: those of the command line, or every replica of the
// operator, by its name.
#pragma once

#include "worker/host/host_options.h"
#include "worker/host/host_session.h"

struct proxies_config {
    const struct options *options;
    struct session_config session; // what all have in common: worker, module, instance, executor
    void (*on_ready)(void *ctx);   // a proxy has welcomed this worker
    void (*on_trouble)(void *ctx, const char *what);
    void (*on_over)(void *ctx, const char *why); // nothing is left to serve: proxies_stop() is due, perhaps in it
    void (*on_stopped)(void *ctx);               // after proxies_stop(), perhaps inside of it
    void *ctx;
};

struct proxies;

// Dials at once. The configuration's strings are borrowed. ERR_INVALID for an address or certificates that make no
// sense.
struct proxies *proxies_new(struct loop *loop, const struct proxies_config *config, struct err *err);
void proxies_ask_place(struct proxies *p, const struct rendezvous_question *q); // all of them
void proxies_tell_progress(struct proxies *p, const char *body, size_t len);    // all of them
// One of those that are connected, another one each time.
void proxies_ask_archive(struct proxies *p, const struct archive_piece *piece, unsigned nth);
void proxies_stop(struct proxies *p); // once: session_stop() for all
void proxies_free(struct proxies *p); // at once; accepts NULL
