// SPDX-License-Identifier: Apache-2.0
// One websocket connection. Its first record goes to HELLO, all further ones to the role that HELLO gave it.
#pragma once

#include "common/base/json_writer.h"
#include "common/wire/record_reader.h"
#include "common/wire/share.h"
#include "operator/gateway/admission.h"
#include "operator/gateway/gateway_state.h"
#include "operator/gateway/hello.h"
#include "operator/gateway/target.h"

enum connection_state {
    CONNECTION_UPGRADED, // no byte was exchanged
    CONNECTION_GREETED,  // HELLO is awaited
    CONNECTION_WAITING,  // for the authority; what comes stays unread
    CONNECTION_SERVED,   // the role has it
    CONNECTION_ENDED,    // a close is under way: nothing that comes counts
};

struct connection;

// What a connection does once it is known whose it is. `self` is the role's own.
struct role {
    const char *name;
    bool pieces; // it takes long bodies in pieces, or has them collected
    // A whole body, or a piece. ROUTER_COLLECT: the body that begins with this piece shall come whole. Negative:
    // the peer broke the protocol.
    int (*record)(struct connection *c, const struct record *rec, struct err *err);
    // A whole message. NULL: records are spoken. `blob`: of a long one, which lies in it (ws_server.h); else NULL.
    void (*text)(struct connection *c, const char *text, size_t len, struct blob *blob);
    // Of what was read the rest waits: the peer's answers take too much, or its namespace has had its turn. NULL =
    // never.
    bool (*stops)(const struct connection *c);
    bool (*works)(
        const struct connection *c);     // it is in the middle of something that after() goes on with; may be NULL
    void (*after)(struct connection *c); // what was read was handed over, or a queue was drained; may be NULL
    void (*changed)(struct connection *c, struct peer *p); // by the router; NULL = it does not know it
    void (*end)(struct connection *c);
    bool (*idle)(const struct connection *c);    // it waits for no answer; NULL = it is there for others, who may
    bool (*awaited)(const struct connection *c); // somebody waits for its answer; NULL = never
};

// The first record. Negative: the peer broke the protocol; 0 also where it was refused.
typedef int connection_greet(struct connection *c, const struct record *rec, struct err *err);

struct connection {
    struct outlet outlet; // first
    struct list link;
    struct gateway *gateway;
    struct ws_session *ws;
    enum connection_state state;
    connection_greet *greet;
    struct target target;
    char *token; // of the upgrade, or of a client's HELLO; NULL = none
    bool open;   // it needs none
    char address[64];
    char name[256];  // for the log: whom it is from
    bool json, lost; // lost: it ended without a close frame
    bool told;       // GOODBYE
    bool output;     // of a client: it wants what ranks print
    bool done;       // the peer wants nothing more, and has said so
    struct record_reader reader;
    struct share share; // of memory, where it `shares`
    bool shares;
    struct alarm alarm;                 // HELLO, then the role's
    struct admission admission, review; // of a client; the same question again, while it is served
    struct list unread;                 // what came while it was waiting, or stopped
    struct list behind;                 // in the gateway's list while it was stopped and has something
    size_t held_bytes;
    struct quota *payer;     // of those, of a client: its namespace; NULL = nobody
    size_t want;             // set by the role with ROUTER_COLLECT, as the peer's
    const struct role *role; // NULL until it is SERVED
    void *self;
};

// For greeting.h: of a handshake. A HELLO has at most so many bytes.
struct connection *connection_new(struct gateway *g, struct ws_session *ws, const struct target *target,
                                  size_t max_hello, connection_greet *greet);
void connection_free(struct connection *c);
void connection_drain(struct connection *c);      // this replica stops: it is told, or goes if it is not served yet
void connection_go_if_done(struct connection *c); // where no new calls are taken any more, and none is open
void connection_goodbye(struct connection *c);    // it goes now

// As the callbacks of ws_server_config.
void connection_data(void *gateway, struct ws_session *ws, const char *data, size_t len, bool end);
char *connection_place(void *gateway, struct ws_session *ws, size_t *ret_room);
void connection_message(void *gateway, struct ws_session *ws, const struct ws_message *m);
void connection_drained(void *gateway, struct ws_session *ws);
bool connection_waits(void *gateway, const struct ws_session *ws);
void connection_closed(void *gateway, struct ws_session *ws, unsigned code, const char *reason); // frees it

// For the roles. The connection goes on with what is unread, if there was anything. `quota` pays for what has come in
// part, and outlives the role.
void connection_serve(struct connection *c, const struct role *role, void *self, struct quota *quota);
void connection_owner(struct connection *c, const char *ns); // before that: in whose turns it is read
void connection_wait(struct connection *c);                  // reads no more until connection_serve()
// Tells the peer why (an ERROR of the session, where records are spoken) and closes. The role has ended on return.
void connection_close(struct connection *c, unsigned code, const struct err *err);
void connection_refuse(struct connection *c, const struct err *err); // the same with the code that fits the error
void connection_expired(struct connection *c);                       // and because its token has ended
int connection_send(struct connection *c, uint8_t type, const char *body, size_t len, struct err *err);
// Long bodies by reference with a peer of this host, where the gateway was told to (docs/protocol.md, "Shared memory").
// Into a WELCOME: what the peer needs to know for it, where it is on a Unix socket. From then on it may do so.
void connection_share(struct connection *c, struct json_writer *w);
bool connection_in_body(const struct connection *c);   // has to be read on
void connection_read(struct connection *c, bool read); // reads on, once nothing is unread; or not
bool connection_may_go_on(const struct connection *c);
void connection_go_on(struct connection *c);    // with what is unread, or what it works at
void connection_works_on(struct connection *c); // in the next turn of the loop
