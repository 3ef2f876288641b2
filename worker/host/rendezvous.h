// SPDX-License-Identifier: Apache-2.0
// Lets ranks meet. The first rank of a list waits at the port of its object server. The others ask the proxy for its
// address, and connect. Nobody has to agree on a port or an address. The proxy's answer contains a proof, made with the
// secret of the first rank's attempt. With this proof, the first rank lets them in. docs/protocol.md, "Rendezvous".
#pragma once

#include "common/base/loop.h"
#include "common/wire/mesh.h"
#include "worker/host/peer_wire.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { RENDEZVOUS_JOINERS_MAX = 8192, RENDEZVOUS_LISTS_MAX = 4096, RENDEZVOUS_ASK_MS = 200, RENDEZVOUS_AT_SIZE = 96 };

struct rendezvous;

struct rendezvous_question { // a rank that wants to join asks: where is that rank?
    char group[64];          // "" = its own
    uint32_t rank, index;    // index: its own position in the list
    uint64_t id;
    int64_t until;
};

struct rendezvous_config {
    struct loop *loop;
    uint32_t attempt;
    int rank, world;                                             // of this process, and their number
    int64_t limit_ms;                                            // for communicators without a limit of their own
    void (*ask)(void *ctx, const struct rendezvous_question *q); // called on the loop's thread: ask the proxies
    void *ctx;
};

struct rendezvous *rendezvous_new(const struct rendezvous_config *config);
void rendezvous_free(struct rendezvous *rv); // on the loop's thread, when no other thread uses it; accepts NULL

// On the loop's thread.
// The answer of a proxy to a question with that id and that time; until: 0 = it does not say.
void rendezvous_place(struct rendezvous *rv, uint64_t id, int64_t until, const char *at, const char *key);
// The meshes of the object's spec. They come before the meshes that the classes publish. Only the first call of each
// kind counts: it copies the meshes.
void rendezvous_meshes(struct rendezvous *rv, const struct mesh *meshes, size_t n, bool published);
// Returns true if the question shows the right proof. `secret`: the secret of this attempt, may be NULL. `err` gets
// ERR_UNAVAILABLE or ERR_FORBIDDEN.
bool rendezvous_admits(const char *secret, const struct peer_request *g, struct err *err);
void rendezvous_join(struct rendezvous *rv, int fd, const struct peer_request *g); // owns the descriptor from now on

// On any other thread.

int rendezvous_rank(const struct rendezvous *rv);
int rendezvous_world(const struct rendezvous *rv);
int64_t rendezvous_limit_ms(const struct rendezvous *rv);

struct rendezvous_list {
    const int *ranks; // of this process's group; NULL: the list is known by its id, and begins with rank `first`
    int first;
    const char *group; // the group of the first rank; NULL = the group of this process
    uint64_t id;       // of the rendezvous; rendezvous_meet() sets it if `ranks` is not NULL
    int n, index;      // index: position of this process
    int64_t limit_ms;
    const atomic_bool *canceled;
    // Called several times a second. Returns true if nobody needs the rendezvous any more. May be NULL.
    bool (*stop)(void *ctx);
    void *ctx;
};

// Finds the mesh with that name; NULL = the first one. It is in the arena. ERR_INVALID.
int rendezvous_mesh(struct rendezvous *rv, const char *name, uint32_t world, struct arena *a, struct mesh *ret,
                    struct err *err);
// Returns connections for a star. In the first rank of the list, links[i] goes to rank i of the list; -1 = it has not
// come within the limit. In another rank, links[0] goes to the first one. ERR_TIMEOUT, ERR_CANCELED (also if `stop`
// returned true before all had come), ERR_FORBIDDEN, ERR_LIMIT.
int rendezvous_meet(struct rendezvous *rv, struct rendezvous_list *l, int *links, struct err *err);
// Call this after rendezvous_meet() returned 0, with the same list. made: the members have made their communicator. If
// not, the next rendezvous of these ranks has the same id.
void rendezvous_end(struct rendezvous *rv, const struct rendezvous_list *l, bool made);
