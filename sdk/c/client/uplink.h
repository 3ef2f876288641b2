// SPDX-License-Identifier: Apache-2.0
// The connection of a client to its proxy: connects, sends HELLO, waits for WELCOME. When the connection is lost, it
// reconnects: at once if the name has an address that has not failed since, else after a pause with jitter. If the
// proxy refuses it (no token, no right, no such path), it reconnects only when a call needs it. After a proxy's
// GOODBYE, another uplink takes new calls, and this one stays until its calls are answered.
#pragma once

#include "common/base/list.h"
#include "common/base/rand.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_addresses.h"
#include "common/ws/ws_sharing.h"
#include "sdk/c/client/settings.h"

enum {
    UPLINK_STEADY_MS = 500, // an uplink that is lost sooner counts as a failure, too: the pauses continue to grow
    UPLINK_RETRY_MIN_MS = 100,
    UPLINK_RETRY_MAX_MS = 1000, // while calls wait: they must find a proxy that comes back within a second
    UPLINK_RETRY_IDLE_MS = 10 * 1000,
    UPLINK_ASKED_MAX_MS = 10 * 1000, // limit for the pause that a busy proxy asks for
    // How long the first attempts wait for the WELCOME; twice as long after every second failure. A proxy that is
    // stopped, or whose machine is stopped, takes connections and never answers. Another address may answer, or another
    // try through a Service.
    UPLINK_PATIENCE_MS = 2000,
    UPLINK_LINGER_MS = 250, // how long the proxy may take to answer our close, before it is dialed again
};

struct uplink;

struct uplink_config { // everything is borrowed
    struct loop *loop;
    const struct settings *settings;
    struct quota *quota;            // for bodies that come in
    struct ws_addresses *addresses; // NULL = a path, or an address that is not valid, which dialing reports
    struct memory **memory;         // for long arguments; made for the first proxy that can read it
    // Called from the loop, never inside a call. on_too_long: an answer was too long, so the connection ends.
    void (*on_answer)(void *ctx, struct uplink *u, const struct record *r);
    void (*on_too_long)(void *ctx, struct uplink *u, uint32_t call, const struct err *err);
    void (*on_change)(void *ctx); // the uplink is up or leaving, or there is room to send again
    // The uplink is not up any more, or this attempt failed. refused: it is not tried again by itself.
    void (*on_down)(void *ctx, struct uplink *u, const struct err *why, bool refused);
    void *ctx;
};

enum uplink_state { UPLINK_DOWN, UPLINK_DIALING, UPLINK_UP, UPLINK_LEAVING };

struct uplink {
    struct uplink_config config;
    enum uplink_state state; // LEAVING: the proxy takes no new calls; answers may still come
    uint32_t max_calls;      // the proxy's limit, 0 = not known
    size_t max_body;
    // Used by the owner. sent: calls that were sent over it and are not answered.
    struct list sent;
    uint32_t n_sent;
    struct list link;
    // private
    struct ws_client *ws;
    struct record_reader reader;
    struct ws_sharing sharing;
    struct rand rand;
    struct loop_timer *timer; // dials, or ends a connection that gets no WELCOME or does not close
    unsigned failures;        // failures in a row
    int64_t backoff_ms, idle_ms, not_before_ms, up_since_ms;
    char where[400]; // for messages: the URL, and the address for its name
    bool refused, needed, closing, left;
};

// leaving: the uplink that this one replaces, and why. It dials no more, and its address is dialed last. NULL: none.
struct uplink *uplink_new(const struct uplink_config *config, struct uplink *leaving, const struct err *why);
void uplink_free(struct uplink *u);
void uplink_need(struct uplink *u); // a caller waits for it to be up
// An orderly end with this close code (docs/protocol.md). on_down follows at once; it dials no more.
void uplink_leave(struct uplink *u, unsigned code, const char *reason);
bool uplink_gone(const struct uplink *u); // after uplink_leave(): the other side has been told
int uplink_send(struct uplink *u, const struct record_header *h, const struct record_part *parts, size_t n,
                struct err *err);
int uplink_send_copy(struct uplink *u, const struct record_header *h, const void *body, size_t len, struct err *err);
void uplink_cancel(struct uplink *u, uint32_t call); // tells the proxy, if there is one
// The rest of its arguments is not sent. False: nothing was left.
bool uplink_withdraw(struct uplink *u, uint32_t call);
// During on_down: takes back the body of a call. No byte of it has gone out, and none will. NULL: some bytes may have.
struct blob *uplink_take_back(struct uplink *u, uint32_t call);
// From now on, no byte of its arguments, which are in `args`, is sent, and nothing refers to `args`.
void uplink_reclaim(struct uplink *u, uint32_t call, const struct blob *args);
// Arguments of this length are sent from their place: a copy into shared memory would save nothing.
bool uplink_lends(const struct uplink *u, size_t len);
struct blob *uplink_blob(struct uplink *u, size_t len, struct quota *quota); // for arguments; as blob_new()
void uplink_flush(struct uplink *u);                                         // callbacks come as in a turn
bool uplink_ended(const struct uplink *u); // the proxy has ended it, and this was not read yet
bool uplink_takes(const struct uplink *u); // it is up, and neither side closes it
size_t uplink_queued(const struct uplink *u);
