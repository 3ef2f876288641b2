// SPDX-License-Identifier: Apache-2.0
// The state of a gateway, for the files of this folder, and errors in the form that each kind of peer gets.
#pragma once

#include "common/base/list.h"
#include "common/ws/memory.h"
#include "common/ws/ws_server.h"
#include "operator/gateway/alarm.h"
#include "operator/gateway/gateway_config.h"

// A close code of the private range (RFC 6455, 7.4.2): the token of the connection has expired. The client can connect
// with a new one.
enum { GATEWAY_CLOSE_EXPIRED = 4401 };

struct gateway {
    struct loop *loop;
    struct gateway_config config;
    struct ws_server *server;
    struct router router;
    struct quota *unadmitted; // for HELLOs of all peers that are not admitted yet
    struct loop_hook *hook;
    struct loop_timer *timer;
    int64_t timer_at; // when it is due, INT64_MAX = not armed
    struct alarms alarms;
    struct list connections, posts;
    struct list archive_sources; // agents that keep archives (archives.h)
    struct list behind;          // connections with input that waits for another turn of the loop
    struct list behind_posts;    // requests whose namespace has used up its part of the turn
    struct loop_timer *turn;     // starts the next turn at once
    struct map shown_tickets;    // UID of a group -> the tickets that were shown (worker_peer.c)
    char *ca_pem;
    struct memory *probe; // NULL: it shares no memory
    bool stopping, ended; // ended: all peers were told to go
    struct alarm settle;  // until then it takes calls that may have been sent before the client read the GOODBYE
    struct alarm drain;   // until then open calls may end
    struct gateway_counters counters; // the counters that are not kept elsewhere
    int64_t log_second;               // the second of the last logged refusals ...
    unsigned log_count;               // ... and their number in it
};

// The owner of a peer in the router. It is the first member of the structure that it is part of.
struct peer_owner {
    void (*changed)(struct peer_owner *o, struct peer *p);
    const struct admission *admission; // of a client
    const char *ns;                    // the namespace that it was admitted to
    const void *lifetime;              // identifies the session (struct provision); NULL = it is a single request
};

unsigned gateway_close_code(int code); // for an err_code
// Counts and logs a request that is refused. Returns the status of the answer.
int gateway_refused(struct gateway *g, struct ws_request *r, const struct err *err);
// Logs a peer that was refused or closed. Writes only a few lines per second.
void gateway_log_refusal(struct gateway *g, const char *who, const char *peer, const struct err *err);
void gateway_error_body(const struct err *err, struct buf *out); // writes the body of an ERROR record
