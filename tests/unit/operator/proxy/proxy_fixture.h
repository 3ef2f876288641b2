// SPDX-License-Identifier: Apache-2.0
// A router with clients and workers around it, all in memory. Records that are queued for a peer are written into
// messages and read back, as a connection would do it.
#pragma once

#include "operator/proxy/router.h"
#include "operator/proxy/session.h"
#include "tests/unit/clock_fake.h"

#define FIXTURE_UID "uid-1"

struct proxy_fixture {
    struct clock_fake clock;
    struct router router;
};

// One end of a connection, and the records that arrived there, oldest first. wire_next() takes them.
struct wire {
    struct record_writer out;
    struct record_reader reader;
    struct list records;
};

struct wire_record {
    struct list link;
    struct record_header h;
    uint64_t seq;
    size_t len;
    char body[]; // followed by a NUL
};

struct client {
    struct wire wire;
    struct session *session;
    bool unsent; // the last error said that no rank has run the call
};

struct worker {
    struct wire wire;
    struct member *member; // NULL = not connected
    uint32_t rank, attempt;
};

extern const struct router_config fixture_limits;
// From now on, bodies reach the router in pieces, cut at random places, as far as it takes them in pieces.
extern bool fixture_cuts;

void fixture_init(struct proxy_fixture *f, const struct router_config *limits); // NULL = fixture_limits
void fixture_done(struct proxy_fixture *f);
// Group ml/llama, FIXTURE_UID.
void fixture_group(struct proxy_fixture *f, uint32_t world, uint32_t attempt, const char *refusal);
void fixture_meshes(struct proxy_fixture *f, uint32_t world, const struct mesh *meshes, size_t n); // of attempt 1
void fixture_pass(struct proxy_fixture *f, int64_t ms);                                            // this time passes
unsigned fixture_turns(struct proxy_fixture *f); // until nothing is left for a later turn. Returns how many there were

// The worker is on node n<rank>, in pod llama-<rank>-0. It declares what `hello` says. NULL: add is ONE_TO_ALL, each
// ALL_TO_ALL, first RANK_ZERO.
int worker_dial_as(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, const char *hello,
                   struct err *err);
int worker_dial(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, struct err *err);
void worker_start(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt); // must succeed
void worker_hang_up(struct proxy_fixture *f, struct worker *w); // accepts a worker that is not connected
int worker_answer(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *json,
                  struct err *err);
int worker_answer_bytes(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *body,
                        size_t len, struct err *err);
// Takes the worker's oldest CALL, which must have these arguments. Returns its id, 0 = there is none.
uint32_t worker_takes(struct worker *w, const char *args);
// Sends a RESULT that the router accepts.
void worker_says(struct proxy_fixture *f, struct worker *w, uint32_t id, const char *json);

void client_open(struct proxy_fixture *f, struct client *c, const char *group);
void client_open_in(struct proxy_fixture *f, struct client *c, const char *ns, const char *group);
void client_close(struct client *c);
struct call_text {
    uint32_t id;
    uint32_t rank; // or RECORD_GROUP
    uint8_t dispatch, execute, flags;
    const char *head, *args;
    size_t args_len; // 0 = strlen(args)
};
int client_send(struct client *c, const struct call_text *call, struct err *err);
struct call_pieces { // a call of the group that is sent in pieces
    uint32_t id, rank;
    uint8_t dispatch, execute;
    char *bytes; // free() them if the call is not sent to its end
    size_t len, at;
};
struct call_pieces call_pieces(uint32_t id, const char *head, const char *args, size_t args_len);
int call_pieces_send(struct client *c, struct call_pieces *call, size_t n,
                     struct err *err); // sends n bytes, or the rest
int client_cancel(struct client *c, uint32_t id);
// The next answer: "1 RESULT [1,2]" or "1 ERROR rank=2 TIMEOUT message"; NULL = nothing came. Valid until the next
// call.
const char *client_hears(struct client *c);

void wire_pass(struct wire *w);                // queued records arrive, and can be taken
struct wire_record *wire_next(struct wire *w); // NULL = nothing came; free() it
