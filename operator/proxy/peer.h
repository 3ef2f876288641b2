// SPDX-License-Identifier: Apache-2.0
// One connection as the router sees it: a queue of records, and what its owner should do with the connection. The
// router never calls back. It notes the peers with news. Their owner passes in what it has, and then asks
// router_changed().
#pragma once

#include "common/base/list.h"
#include "common/wire/record_writer.h"

#include <stdbool.h>

struct peer {
    struct record_writer *out; // the connection's queue; NULL once the connection has ended
    void *owner;               // the router does not use it
    // False: do not read the connection, because the peer's memory is used up for now. If a body has begun to arrive
    // (record_reader_unfinished() is not UINT64_MAX), read it all the same: only its end frees that memory. The rest of
    // a client's body is read only while session_takes_body().
    bool read;
    size_t want;    // after ROUTER_COLLECT: how many bytes of the body to collect; the rest arrives in pieces. 0 = all
    int close_code; // 0 = go on. Else: close the connection because of this err_code
    char *close_reason; // the message for the peer
    // private
    struct list changed;
    struct list *changes; // the router's list of peers with news
};

void peer_init(struct peer *p, struct list *changes, struct record_writer *out, void *owner);
void peer_done(struct peer *p);
void peer_changed(struct peer *p);
// Tells the peer to pause the body of that call, or to go on. False: its queue has no room now.
bool peer_pause(struct peer *p, bool pause, uint32_t id, uint32_t rank);
void peer_close(struct peer *p, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
