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
    UPLINK_STEADY_MS = 500, // one that is lost sooner counts as a failure, too: the pauses go on growing
    UPLINK_RETRY_MIN_MS = 100,
    UPLINK_RETRY_MAX_MS = 1000, // where calls wait: they are to find a proxy that comes back within a second
    UPLINK_RETRY_IDLE_MS = 10 * 1000,
    UPLINK_ASKED_MAX_MS = 10 * 1000, // of what a proxy asks for that has too much to do
    // For the WELCOME, at first; twice as long when every second one fails. One that is stopped, or whose machine is,
    // takes connections and says nothing: another address, or another try through a Service, may have more to say.
    UPLINK_PATIENCE_MS = 2000,
    UPLINK_LINGER_MS = 250, // for the proxy's answer to our close, before it is dialed again
};

struct uplink;

struct uplink_config { // all is borrowed
    struct loop *loop;
    const struct settings *settings;
    struct quota *quota;            // of bodies that are coming in
    struct ws_addresses *addresses; // NULL = a path, or what makes no sense, as dialing says
    struct memory **memory;         // of long arguments, made for the first proxy that can read it
    // From the loop, never inside of a call. on_too_long: an answer that is, for which the connection ends.
    void (*on_answer)(void *ctx, struct uplink *u, const struct record *r);
    void (*on_too_long)(void *ctx, struct uplink *u, uint32_t call, const struct err *err);
    void (*on_change)(void *ctx); // up, leaving, or there is room to send again
    // Not up any more, or not this time. refused: it will not be tried again by itself.
    void (*on_down)(void *ctx, struct uplink *u, const struct err *why, bool refused);
    void *ctx;
};

enum uplink_state { UPLINK_DOWN, UPLINK_DIALING, UPLINK_UP, UPLINK_LEAVING };

struct uplink {
    struct uplink_config config;
    enum uplink_state state; // LEAVING: the proxy takes no new calls, answers may still come
    uint32_t max_calls;      // what the proxy allows, 0 = not said
    size_t max_body;
    // The owner's. sent: calls that were sent over it and are not answered.
    struct list sent;
    uint32_t n_sent;
    struct list link;
    // private
    struct ws_client *ws;
    struct record_reader reader;
    struct ws_sharing sharing;
    struct rand rand;
    struct loop_timer *timer; // dials, or ends what was dialed and not welcomed, or what closes
    unsigned failures;        // in a row
    int64_t backoff_ms, idle_ms, not_before_ms, up_since_ms;
    char where[400]; // for messages: the URL, and the address behind its name
    bool refused, needed, closing, left;
};

// leaving: one that it takes over from, which dials no more, and why; its address is dialed last. NULL: from none.
struct uplink *uplink_new(const struct uplink_config *config, struct uplink *leaving, const struct err *why);
void uplink_free(struct uplink *u);
void uplink_need(struct uplink *u);                      // somebody waits for it to be up
void uplink_leave(struct uplink *u, const char *reason); // an orderly end; on_down follows at once, and no more dialing
bool uplink_gone(const struct uplink *u);                // after it: the other side has heard of it
int uplink_send(struct uplink *u, const struct record_header *h, const struct record_part *parts, size_t n,
                struct err *err);
int uplink_send_copy(struct uplink *u, const struct record_header *h, const void *body, size_t len, struct err *err);
void uplink_cancel(struct uplink *u, uint32_t call); // the proxy is told, if there is one
// What is left of its arguments is not sent. False: nothing was left.
bool uplink_withdraw(struct uplink *u, uint32_t call);
// During on_down: the body of a call. Nothing of it has gone out, and nothing will. NULL: some of it may have.
struct blob *uplink_take_back(struct uplink *u, uint32_t call);
// Nothing of its arguments, which are in `args`, is sent or referred to from now on.
void uplink_reclaim(struct uplink *u, uint32_t call, const struct blob *args);
// Arguments of this length go from where they are: to copy them into memory that the proxy shares would save nothing.
bool uplink_lends(const struct uplink *u, size_t len);
struct blob *uplink_blob(struct uplink *u, size_t len, struct quota *quota); // for arguments; as blob_new()
void uplink_flush(struct uplink *u);                                         // calls back as a turn does
bool uplink_ended(const struct uplink *u);                                   // by the proxy, which was not read yet
size_t uplink_queued(const struct uplink *u);
