// SPDX-License-Identifier: Apache-2.0
// The state of a gateway, for the files of this folder; and errors in the form that each kind of peer gets.
#pragma once

#include "common/base/list.h"
#include "common/ws/memory.h"
#include "common/ws/ws_server.h"
#include "operator/gateway/alarm.h"
#include "operator/gateway/gateway_config.h"

// Of a private range (RFC 6455, 7.4.2): the token of the connection has expired, which a renewed one mends.
enum { GATEWAY_CLOSE_EXPIRED = 4401 };

struct gateway {
    struct loop *loop;
    struct gateway_config config;
    struct ws_server *server;
    struct router router;
    struct quota *strangers; // for HELLOs, of all who have not been let in yet
    struct loop_hook *hook;
    struct loop_timer *timer;
    int64_t timer_at; // when it is due, INT64_MAX = not armed
    struct alarms alarms;
    struct list connections, posts;
    struct list archivists;   // agents (archives.h)
    struct list behind;       // connections whose input waits for another turn of the loop
    struct list behind_posts; // requests whose namespace has had its turn
    struct loop_timer *turn;  // the next one, at once
    struct map shown_tickets; // UID of a group -> which tickets were shown (worker_peer.c)
    char *ca_pem;
    struct memory *probe;             // NULL: no memory is shared
    bool stopping, ended;             // ended: all were told to go
    struct alarm settle;              // until then calls are taken that were sent before their GOODBYE was read
    struct alarm drain;               // until then calls may end
    struct gateway_counters counters; // those that are not kept elsewhere
    int64_t log_second;               // of the refusals that were logged ...
    unsigned log_count;               // ... their number in it
};

// Owner of a peer in the router: first in what it belongs to.
struct outlet {
    void (*changed)(struct outlet *o, struct peer *p);
    const struct admission *admission; // of a client
    const char *ns;                    // that it was admitted to
    const void *lifetime;              // what ends when it does; NULL = it is one request
};

int gateway_http_status(int code);     // of an err_code
unsigned gateway_close_code(int code); // the same
// One line for a peer that was not let in or was thrown out; a few a second.
void gateway_log_refusal(struct gateway *g, const char *who, const char *peer, const struct err *err);
void gateway_error_body(const struct err *err, struct buf *out); // of an ERROR record
