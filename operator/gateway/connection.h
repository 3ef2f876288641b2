// SPDX-License-Identifier: Apache-2.0
// One websocket connection. Its first record goes to HELLO, and all later ones go to the role that HELLO has chosen.
#pragma once

#include "common/base/json_writer.h"
#include "common/wire/record_reader.h"
#include "common/wire/share.h"
#include "operator/gateway/admission.h"
#include "operator/gateway/gateway_state.h"
#include "operator/gateway/hello.h"
#include "operator/gateway/target.h"

enum connection_state {
    CONNECTION_UPGRADED,     // no byte was exchanged yet
    CONNECTION_AWAITS_HELLO, // it waits for HELLO
    CONNECTION_WAITING,      // it waits for the authority; incoming bytes stay unread
    CONNECTION_SERVED,       // the role takes its records
    CONNECTION_ENDED,        // it is being closed: incoming bytes are ignored
};

struct connection;

// The functions of a connection once it is known who the peer is. `self` belongs to the role.
struct peer_role {
    const char *name;
    bool pieces; // it takes long bodies in pieces, or asks to collect them
    // Takes a whole body, or a piece. It returns ROUTER_COLLECT if the body that begins with this piece must come
    // whole. It returns an error if the peer has broken the protocol.
    int (*record)(struct connection *c, const struct record *rec, struct err *err);
    // Takes a whole text message. NULL: the peer sends records. `blob` contains a long message (ws_server.h); else it
    // is NULL.
    void (*text)(struct connection *c, const char *text, size_t len, struct blob *blob);
    // Returns true if the rest of what was read must wait: the answers for the peer take too much memory, or its
    // namespace has used up its part of the turn. NULL = never.
    bool (*stops)(const struct connection *c);
    bool (*works)(const struct connection *c); // it is doing work that after() continues; may be NULL
    void (*after)(struct connection *c);       // the input was handed over, or a queue was drained; may be NULL
    // Called by the router; NULL = the router does not know this peer.
    void (*changed)(struct connection *c, struct peer *p);
    void (*end)(struct connection *c);
    bool (*idle)(const struct connection *c);    // it waits for no answer; NULL = others may wait for its answers
    bool (*awaited)(const struct connection *c); // somebody waits for its answer; NULL = never
};

// Takes the first record. It returns an error if the peer has broken the protocol, and 0 also if the peer was refused.
typedef int connection_hello(struct connection *c, const struct record *rec, struct err *err);

struct connection {
    struct peer_owner owner; // must be first
    struct list link;
    struct gateway *gateway;
    struct ws_session *ws;
    enum connection_state state;
    connection_hello *on_hello;
    struct target target;
    char *token;           // of a client: from the upgrade, or from its HELLO; NULL = none
    bool open;             // it needs no token
    struct pod_claims pod; // of an agent: from its token; all 0 = it showed none
    struct arena memory;   // of `pod`
    char address[64];
    char name[256];  // who the peer is, for the log
    bool json, lost; // lost: it ended without a close frame
    bool gave_up;    // its peer did not get what it waited for
    const char *cut; // while it ends: why the server cut it; NULL = it did not
    bool told;       // GOODBYE was sent
    bool output;     // for a client: it wants the lines that ranks print
    bool done;       // the peer has said that it needs nothing more
    struct record_reader reader;
    struct share share; // shared memory, if `shares` is set
    bool shares;
    struct alarm alarm;                 // for HELLO, then for the role
    struct admission admission, review; // of a client: whether it may call; the same question again while it is served
    struct list unread;                 // input that came while it was waiting or stopped
    struct list behind;                 // in gateway.behind while it was stopped and has input
    size_t waiting_bytes;
    // For a client: the quota of its namespace, which pays for waiting_bytes. NULL = nobody pays. If the namespace has
    // no room, the connection's own quota, a part of what all peers may have, pays for what one read has brought. A
    // long text gets no such credit: its connection is closed.
    struct quota *payer;
    size_t want;                  // set by the role with ROUTER_COLLECT, as in struct peer
    const struct peer_role *role; // NULL until CONNECTION_SERVED
    void *self;
};

// For upgrade.h: makes a connection at the handshake. `max_hello` is the maximum of bytes in a HELLO.
struct connection *connection_new(struct gateway *g, struct ws_session *ws, const struct target *target,
                                  size_t max_hello, connection_hello *on_hello);
void connection_free(struct connection *c);
void connection_drain(struct connection *c); // this replica stops: sends GOODBYE, or closes it if it is not served yet
void connection_go_if_done(struct connection *c); // closes it if no new calls are taken and none is open
void connection_goodbye(struct connection *c);    // says goodbye and closes it now

// The callbacks of ws_server_config.
void connection_data(void *gateway, struct ws_session *ws, const char *data, size_t len, bool end);
char *connection_buffer(void *gateway, struct ws_session *ws, size_t *ret_room);
void connection_message(void *gateway, struct ws_session *ws, const struct ws_message *m);
void connection_drained(void *gateway, struct ws_session *ws);
bool connection_waits(void *gateway, const struct ws_session *ws);
void connection_closed(void *gateway, struct ws_session *ws, unsigned code, const char *reason); // frees it

// For the roles. The connection continues with unread input. `quota` pays for incomplete bodies, and must outlive the
// role.
void connection_serve(struct connection *c, const struct peer_role *role, void *self, struct quota *quota);
// Call this before connection_serve(): the connection is read as part of the work of this namespace.
void connection_owner(struct connection *c, const char *ns);
void connection_wait(struct connection *c); // reads nothing more until connection_serve()
// Sends the reason (a peer with records gets an ERROR of the session) and closes. The role has ended when this returns.
void connection_close(struct connection *c, unsigned code, const struct err *err);
void connection_refuse(struct connection *c, const struct err *err); // closes with the code that fits the error
void connection_expired(struct connection *c);                       // closes because the token has expired
int connection_send(struct connection *c, uint8_t type, const char *body, size_t len, struct err *err);
// Long bodies go by reference to a peer of this host if the gateway is configured for it (docs/protocol.md, "Shared
// memory"). For a peer on a Unix socket, this writes into the WELCOME what the peer needs for that. From then on, the
// peer may use it.
void connection_share(struct connection *c, struct json_writer *w);
bool connection_in_body(const struct connection *c);   // a body is incomplete, so the connection must be read
void connection_read(struct connection *c, bool read); // reads on when nothing is unread; false: stops reading
bool connection_may_go_on(const struct connection *c);
void connection_go_on(struct connection *c);    // continues with unread input, or with its work
void connection_works_on(struct connection *c); // continues in the next turn of the loop
