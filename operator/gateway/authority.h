// SPDX-License-Identifier: Apache-2.0
// Tells the gateway who a peer is and what it may do. In a cluster, operator/identity answers. A local run trusts
// everybody who reaches its socket.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct pod_claims {
    const char *ns, *pod, *pod_uid; // in the arena of the call
    int64_t expires_ms;             // Unix time
};

struct ticket {
    char group_uid[64];
    uint32_t attempt, rank;
    uint64_t serial; // larger in each new ticket that a replica gives to the same process
    unsigned former; // how often its key was replaced since: 0 = the key is in use
};

// The owner of a token. Borrowed during the callback.
struct client_user {
    const char *name;
    // JSON: those members of the spec of a SubjectAccessReview that identify the user, for further questions about the
    // same user. NULL = no further questions are possible.
    const char *subject;
    bool code; // workers in that namespace may run its own code
};

// err->code 0: the client may call until expires_ms (Unix time; 0 = no end). Otherwise `who` may be NULL. Errors:
// ERR_UNAUTHORIZED (401), ERR_FORBIDDEN (403), ERR_UNAVAILABLE, ERR_THROTTLED, ERR_TIMEOUT. Each has a message for the
// user.
typedef void (*authority_done_fn)(void *ctx, const struct client_user *who, int64_t expires_ms, const struct err *err);

struct authority {
    bool open; // a local run: a peer on a Unix socket needs no token, and its processes connect only there
    void *ctx;
    // Asks whether the owner of this token may call workers in the namespace (create workergroups/call), and with its
    // own code (create workergroups/code; or create workergroups, because that chooses what their pods run). It answers
    // once, unless it is canceled: later, or inside the call, which then returns 0. `token` is NULL for a peer that
    // needs none.
    uint64_t (*client)(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx);
    void (*cancel)(void *ctx, uint64_t id); // may be NULL if every answer comes inside the call
    // Returns the pod of this token. ERR_UNAUTHORIZED; ERR_UNAVAILABLE: it is not known now, and the peer shall connect
    // again. The function is NULL if there are no pods.
    int (*pod)(void *ctx, const char *token, struct arena *a, struct pod_claims *ret, struct err *err);
    // Reads a ticket. ERR_UNAUTHORIZED: it is forged, or from another cluster. The gateway itself checks whether it was
    // used before. The function is NULL if there are no tickets: worker processes are then believed.
    int (*ticket)(void *ctx, const char *text, struct ticket *ret, struct err *err);
    // The same ticket always gives the same text. The function may be NULL if there are no tickets.
    const char *(*ticket_text)(void *ctx, const struct ticket *t, struct arena *a);
    // Returns the secret that the processes of this attempt share, as hex; NULL = none.
    const char *(*peer_secret)(void *ctx, const struct ticket *t, struct arena *a);
    // Returns the proof that another replica must show; NULL: the key is not there yet. The function is NULL if there
    // are no other replicas.
    const char *(*replica_proof)(void *ctx, const char *name, const char *instance, struct arena *a);
};
