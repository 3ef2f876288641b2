// SPDX-License-Identifier: Apache-2.0
// The configuration of a session (host_session.h), and its limits.
#pragma once

#include "common/ws/ws_sharing.h"
#include "worker/host/archive_fetch.h"
#include "worker/host/objects.h"
#include "worker/host/rendezvous.h"
#include "worker/host/roles.h"

enum {
    SESSION_CALLS_MAX = 1024,       // calls that wait in one session; further calls are answered with LIMIT
    SESSION_WELCOME_MS = 10 * 1000, // for the answer to HELLO
    // The pause before dialing again. It doubles up to the maximum. A random part of up to a half is subtracted. After
    // a long absence of a proxy, its workers are back within a few seconds.
    SESSION_RETRY_MIN_MS = 100,
    SESSION_RETRY_MAX_MS = 3000,
    SESSION_AGAIN_MS = 250,         // instead of the minimum, if the proxy cannot take the worker at the moment
    SESSION_REFUSED_MS = 60 * 1000, // if the proxy will not take the worker again, because the attempt is over
};

#define SESSION_BODY_MAX ((size_t)2 << 30)     // from a proxy; a larger body is refused, and the connection stays
#define SESSION_BYTES_DEFAULT SESSION_BODY_MAX // of the arguments that wait in one session

struct host_session_config {
    const char *address, *path; // as in ws_client; the address is copied
    struct ws_tls *tls;         // NULL = none
    const char *server_name;    // for TLS; NULL = the host of the address
    const char *group;          // UID of the WorkerGroup; NULL = none, then the ticket is NULL, too
    const char *ticket;
    int64_t attempt;
    const struct cadre_worker *worker;
    const struct module *module;
    const char *awaits; // as in cadre_host_options
    struct roles *roles;
    struct nested_client *client; // for calls that methods make; NULL = methods cannot make calls
    struct method_executor *executor;
    struct objects *objects;       // NULL = no objects are kept
    struct rendezvous *rendezvous; // for communicators; NULL = none
    struct archive_fetch *archive; // NULL = no archive is missing
    bool shares;      // long results go through shared memory, if the proxy is on this host and can read it
    bool own;         // the program that runs the methods may write to arguments in shared memory (cow_args.h)
    uint64_t seed;    // for the jitter
    size_t bytes_max; // of the arguments that wait; a call that does not fit is answered with LIMIT
    void (*on_ready)(void *ctx);
    // first: it is the first message since the connection was ready; later ones repeat it
    void (*on_lost)(void *ctx, const struct err *err, int64_t retry_ms, bool first);
    // The proxy says that this process has nothing to serve any more: its group was deleted, or its end was reported.
    // The session does not dial again.
    void (*on_over)(void *ctx, const struct err *err);
    // Called after host_session_stop(), from the loop: nothing waits or is sent any more. May free the session.
    void (*on_stopped)(void *ctx);
    void *ctx;
};
