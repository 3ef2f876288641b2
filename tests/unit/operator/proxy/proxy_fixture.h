// SPDX-License-Identifier: Apache-2.0
// A router with clients and workers around it, all in memory: what is queued for a peer is written into messages
// and read back, as a connection would do it.
#pragma once

#include "operator/proxy/router.h"
#include "operator/proxy/session.h"
#include "tests/unit/clock_fake.h"

#define FIXTURE_UID "uid-1"

struct proxy_fixture {
    struct clock_fake clock;
    struct router router;
};

// One end of a connection: what came through it, oldest first, taken with wire_next().
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
    char body[]; // and a NUL behind it
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
// From now on bodies reach the router in pieces, cut at random places, as far as it takes them so.
extern bool fixture_cuts;

void fixture_init(struct proxy_fixture *f, const struct router_config *limits); // NULL = fixture_limits
void fixture_done(struct proxy_fixture *f);
// Group ml/llama, FIXTURE_UID.
void fixture_group(struct proxy_fixture *f, uint32_t world, uint32_t attempt, const char *refusal);
void fixture_meshes(struct proxy_fixture *f, uint32_t world, const struct grid *meshes, size_t n); // attempt 1
void fixture_pass(struct proxy_fixture *f, int64_t ms);                                            // time
unsigned fixture_turns(struct proxy_fixture *f); // until nothing is left for a later turn; how many there were

// add is ONE_TO_ALL, each ALL_TO_ALL, first RANK_ZERO, or what `hello` says; on node n<rank>, pod llama-<rank>-0.
int worker_dial_as(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, const char *hello,
                   struct err *err);
int worker_dial(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, struct err *err);
void worker_start(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt); // must succeed
void worker_hang_up(struct proxy_fixture *f, struct worker *w); // accepts one that is not connected
int worker_answer(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *json,
                  struct err *err);
int worker_answer_bytes(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *body,
                        size_t len, struct err *err);
// The oldest CALL that it has; "id" is returned, 0 = there is none, and its arguments must be those.
uint32_t worker_takes(struct worker *w, const char *args);
void worker_says(struct proxy_fixture *f, struct worker *w, uint32_t id, const char *json); // a RESULT that is welcome

void client_open(struct proxy_fixture *f, struct client *c, const char *group);
void client_open_in(struct proxy_fixture *f, struct client *c, const char *ns, const char *group);
void client_close(struct client *c);
struct call_text {
    uint32_t id;
    uint32_t rank; // RECORD_GROUP as well
    uint8_t dispatch, execute, flags;
    const char *head, *args;
    size_t args_len; // 0 = strlen(args)
};
int client_send(struct client *c, const struct call_text *call, struct err *err);
struct call_pieces { // to the group; pieces of it are sent
    uint32_t id, rank;
    uint8_t dispatch, execute;
    char *bytes; // free() them where it is not sent to its end
    size_t len, at;
};
struct call_pieces call_pieces(uint32_t id, const char *head, const char *args, size_t args_len);
int call_pieces_send(struct client *c, struct call_pieces *call, size_t n,
                     struct err *err); // n bytes, or what is left
int client_cancel(struct client *c, uint32_t id);
// The next answer: "1 RESULT [1,2]" or "1 ERROR rank=2 TIMEOUT message"; NULL = nothing came. Valid until the next
// call.
const char *client_hears(struct client *c);

void wire_pass(struct wire *w);                // what was queued has gone through, and is there to be taken
struct wire_record *wire_next(struct wire *w); // NULL = nothing came; free() it
