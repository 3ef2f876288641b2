// SPDX-License-Identifier: Apache-2.0
// What is read of connections past libwebsockets: the frames of open sessions (ws_receiver.h), and the bodies of
// requests (ws_request.h). How much of them is read in a turn of the loop, and whose: ws_fair_queue.h.
#pragma once

#include "common/ws/ws_server_state.h"

#include <sys/types.h>
#include <sys/uio.h>

struct ws_reader {
    struct list fresh, ready, later;
    struct ws_connection *connection;
    struct ws_owner *owner;
    SSL *ssl; // NULL: without TLS
    // Its turn. `alone`: nobody else is to be read. Returns the bytes that were read. It may end, but not be freed in
    // it.
    size_t (*read)(struct ws_reader *r, bool alone);
    void (*unwatched)(struct ws_reader *r); // the kernel has no room for another one
    uint64_t read_at;                       // the last turn in which it was read
    bool begun;                             // libwebsockets reads no more
    bool wanted;
    bool watched; // both
    bool more;    // there may be something to read: the kernel said so, and the last read did not find the end of it
    bool hung_up; // nothing will come after that, not even a word of the kernel
};

int ws_readers_new(struct ws_server *server, struct err *err);
void ws_readers_free(struct ws_server *server);
void ws_readers_begin(struct ws_server *server); // before each turn
bool ws_readers_look(void *server);              // reads what is there; whether there was any

// Begins with the next turn, if it is wanted. Of "", as are all strangers, until it has an owner.
void ws_reader_init(struct ws_reader *r, struct ws_connection *c, size_t (*read)(struct ws_reader *r, bool alone),
                    void (*unwatched)(struct ws_reader *r));
void ws_reader_done(struct ws_reader *r); // also of one that is all zero
void ws_reader_want(struct ws_reader *r, bool wanted);
void ws_reader_leave(struct ws_reader *r); // libwebsockets has it back; nothing happens to one that is all zero
void ws_reader_owner(struct ws_reader *r, const char *name, unsigned weight); // whose it is from now on
// Into into[0], if it is not empty; what does not fit there, and only a little, into into[1]. Bytes, 0 where there are
// none now, below 0 where there will be no more. Without TLS, r->more says whether the read filled what it had.
ssize_t ws_reader_read(struct ws_reader *r, struct iovec into[2]);
