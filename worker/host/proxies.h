// SPDX-License-Identifier: Apache-2.0
// All proxies that this worker serves, with a session for each. They are named on the command line, or are all replicas
// of the operator, found by its name.
#pragma once

#include "worker/host/host_options.h"
#include "worker/host/host_session.h"

struct proxies_config {
    const struct host_options *options;
    struct host_session_config session; // what all sessions have in common: worker, module, instance, executor
    void (*on_ready)(void *ctx);        // a proxy has welcomed this worker
    void (*on_trouble)(void *ctx, const char *what);
    void (*on_over)(void *ctx, const char *why); // nothing is left to serve: call proxies_stop(), here or later
    void (*on_stopped)(void *ctx);               // after proxies_stop(), or inside it
    void *ctx;
};

struct proxies;

// Dials at once. The configuration's strings are borrowed. ERR_INVALID: an address or the certificates are wrong.
struct proxies *proxies_new(struct loop *loop, const struct proxies_config *config, struct err *err);
void proxies_ask_place(struct proxies *p, const struct rendezvous_question *q); // asks all proxies
void proxies_tell_progress(struct proxies *p, const char *body, size_t len);    // tells all proxies
// Asks one of the connected proxies, another one for each `nth`.
void proxies_ask_archive(struct proxies *p, const struct archive_piece *piece, unsigned nth);
void proxies_stop(struct proxies *p); // once: host_session_stop() for all
void proxies_free(struct proxies *p); // at once; accepts NULL
