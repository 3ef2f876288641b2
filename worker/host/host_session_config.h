// SPDX-License-Identifier: Apache-2.0
// What a session (host_session.h) is made with, and its limits.
#pragma once

#include "common/ws/ws_sharing.h"
#include "worker/host/archive_seeker.h"
#include "worker/host/objects.h"
#include "worker/host/rendezvous.h"
#include "worker/host/roles.h"

enum {
    SESSION_CALLS_MAX = 1024,       // that wait in one session; more are answered with LIMIT
    SESSION_WELCOME_MS = 10 * 1000, // for the answer to HELLO
    SESSION_RETRY_MIN_MS = 100,     // before dialing again: doubles up to the maximum, less up to a half at random
    SESSION_RETRY_MAX_MS = 3000,    // a proxy that was away for long has its workers back within a few seconds
    SESSION_AGAIN_MS = 250,         // instead of the minimum, after a proxy that cannot take it just now
    SESSION_REFUSED_MS = 60 * 1000, // after a proxy that will not take it again, such as when the attempt is over
};

#define SESSION_BODY_MAX ((size_t)2 << 30) // what a proxy sends; what does not fit is refused, and the connection stays
#define SESSION_BYTES_DEFAULT SESSION_BODY_MAX // of arguments that wait in one session

struct session_config {
    const char *address, *path; // as for ws_client; the address is copied
    struct ws_tls *tls;         // NULL = none
    const char *server_name;    // for TLS; NULL = the host of the address
    const char *group;          // UID of the WorkerGroup; NULL = none, as is the ticket
    const char *ticket;
    int64_t attempt;
    const struct cadre_worker *worker;
    const struct module *module;
    const char *awaits; // as in cadre_host_options
    struct roles *roles;
    struct nested_client *client; // of calls that methods make; NULL = they cannot
    struct executor *executor;
    struct objects *objects;       // NULL = it keeps none
    struct rendezvous *rendezvous; // of communicators; NULL = none
    struct archive_seeker *seeker; // NULL = no archive is missing
    bool shares;                   // long results go in shared memory, if the proxy is on this host and can read it
    bool own;                      // who runs the methods may write to arguments in shared memory (stretch.h)
    uint64_t seed;                 // of the jitter
    size_t bytes_max;              // of arguments that wait; a call that does not fit is answered with LIMIT
    void (*on_ready)(void *ctx);
    // first: since it was last ready; the others say the same again
    void (*on_lost)(void *ctx, const struct err *err, int64_t retry_ms, bool first);
    // The proxy says that this process has nothing to serve any more: its group was deleted, or its end was reported.
    // The session does not dial again.
    void (*on_over)(void *ctx, const struct err *err);
    // After session_stop(), from the loop: nothing waits or is sent any more. May free the session.
    void (*on_stopped)(void *ctx);
    void *ctx;
};
