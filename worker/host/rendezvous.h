// SPDX-License-Identifier: Apache-2.0
// How ranks meet: the first rank of a list waits at the port of its object server. The others ask the proxy for its
// address, and connect. No port or address has to be agreed on. The proxy's answer contains a proof, made with the
// secret of the first rank's attempt, which lets them in. docs/protocol.md, "Rendezvous".
#pragma once

#include "common/base/loop.h"
#include "common/wire/grid.h"
#include "worker/host/peer_wire.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { RENDEZVOUS_JOINERS_MAX = 8192, RENDEZVOUS_LISTS_MAX = 4096, RENDEZVOUS_ASK_MS = 200, RENDEZVOUS_AT_SIZE = 96 };

struct rendezvous;

struct rendezvous_question { // of one that comes: where is that rank?
    char group[64];          // "" = its own
    uint32_t rank, index;    // index: its own place in the list
    uint64_t id;
    int64_t until;
};

struct rendezvous_config {
    struct loop *loop;
    uint32_t attempt;
    int rank, world;                                             // of this process, and how many there are
    int64_t limit_ms;                                            // of communicators that set none
    void (*ask)(void *ctx, const struct rendezvous_question *q); // on the loop's thread: ask the proxies
    void *ctx;
};

struct rendezvous *rendezvous_new(const struct rendezvous_config *config);
void rendezvous_free(struct rendezvous *rv); // on the loop's thread, when no other uses it; accepts NULL

// On the loop's thread.
void rendezvous_place(struct rendezvous *rv, uint64_t id, const char *at, const char *key); // what a proxy says
// Meshes of the object, which go before those that the classes publish. Copied, the first time.
void rendezvous_meshes(struct rendezvous *rv, const struct grid *meshes, size_t n, bool published);
// `secret`: of this attempt, may be NULL. ERR_UNAVAILABLE, ERR_FORBIDDEN in `err`.
bool rendezvous_admits(const char *secret, const struct peer_request *g, struct err *err);
void rendezvous_join(struct rendezvous *rv, int fd, const struct peer_request *g); // takes the descriptor

// On any other thread.

int rendezvous_rank(const struct rendezvous *rv);
int rendezvous_world(const struct rendezvous *rv);
int64_t rendezvous_limit_ms(const struct rendezvous *rv);

struct rendezvous_list {
    const int *ranks; // of the own group; NULL: the list is known by its id, and begins with rank `first`
    int first;
    const char *group; // of the first one; NULL = the own
    uint64_t id;       // where there are no ranks
    int n, index;      // index: of this process
    int64_t limit_ms;
    const atomic_bool *canceled;
    bool (*stop)(void *ctx); // asked several times a second: nobody wants the rendezvous any more; may be NULL
    void *ctx;
};

// The mesh with that name, the first one for NULL; in the arena. ERR_INVALID.
int rendezvous_mesh(struct rendezvous *rv, const char *name, uint32_t world, struct arena *a, struct grid *ret,
                    struct err *err);
// Connections as a star has them. Of the first of the list: links[i] to each of the others, -1 where it has not come
// within the limit. Of another one: links[0] to the first. ERR_TIMEOUT, ERR_CANCELED (also where it was stopped),
// ERR_FORBIDDEN, ERR_LIMIT.
int rendezvous_meet(struct rendezvous *rv, const struct rendezvous_list *l, int *links, struct err *err);
