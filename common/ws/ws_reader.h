// SPDX-License-Identifier: Apache-2.0
// Data that is read past libwebsockets: the frames of open sessions (ws_receiver.h), and the bodies of requests
// (ws_request.h). ws_fair_queue.h decides how much is read in a turn of the loop, and from which connection.
#pragma once

#include "common/ws/ws_server_state.h"

#include <sys/types.h>
#include <sys/uio.h>

struct ws_reader {
    struct list fresh, ready, later;
    struct ws_connection *connection;
    struct ws_owner *owner;
    SSL *ssl; // NULL: without TLS
    // Called when this reader may read. `alone`: no other reader has data. Returns the number of bytes. The reader
    // may end in it, but must not be freed.
    size_t (*read)(struct ws_reader *r, bool alone);
    void (*unwatched)(struct ws_reader *r); // the kernel has no room for another one
    uint64_t read_at;                       // the last turn in which it was read
    bool begun;                             // libwebsockets reads no more
    bool wanted;
    bool watched; // both
    bool more;    // there may be something to read: the kernel said so, and the last read did not reach the end of it
    bool hung_up; // after that, no data comes, and the kernel reports nothing more
};

int ws_readers_new(struct ws_server *server, struct err *err);
void ws_readers_free(struct ws_server *server);
void ws_readers_begin(struct ws_server *server); // before each turn
bool ws_readers_look(void *server);              // reads the data that is there; returns whether there was any

// Begins with the next turn, if reading is wanted. The owner is "", as for all peers that are not known yet, until
// ws_reader_owner().
void ws_reader_init(struct ws_reader *r, struct ws_connection *c, size_t (*read)(struct ws_reader *r, bool alone),
                    void (*unwatched)(struct ws_reader *r));
void ws_reader_done(struct ws_reader *r); // also of one that is all zero
void ws_reader_want(struct ws_reader *r, bool wanted);
void ws_reader_leave(struct ws_reader *r); // libwebsockets reads again; does nothing if `r` is all zero
void ws_reader_owner(struct ws_reader *r, const char *name, unsigned weight); // sets its owner from now on
// Reads into into[0], if it is not empty. A few bytes that do not fit there go into into[1]. Returns bytes, 0 if there
// are none now, below 0 if there will be no more. Without TLS, r->more says whether the read filled the room.
ssize_t ws_reader_read(struct ws_reader *r, struct iovec into[2]);
