// SPDX-License-Identifier: Apache-2.0
// Who a peer is and what it may do: the questions of the gateway. In a cluster, operator/identity answers them. A local
// run trusts everybody who reaches its socket.
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
    uint64_t serial; // grows with each ticket that a replica gives out for the same process
    unsigned former; // how many times the key that it was made with has been replaced: 0 = it is in use
};

// Whose token it was. Borrowed by the callback.
struct client_user {
    const char *name;
    // JSON: the members of a SubjectAccessReview's spec that say who is asking, for further questions about the same
    // person; NULL = there is nobody to ask.
    const char *subject;
    bool code; // it may have code of its own run by workers in that namespace
};

// err->code 0: allowed until expires_ms (Unix time; 0 = no end), else `who` may be NULL. ERR_UNAUTHORIZED (401),
// ERR_FORBIDDEN (403), ERR_UNAVAILABLE, ERR_THROTTLED, ERR_TIMEOUT, each with a message for the user.
typedef void (*authority_done_fn)(void *ctx, const struct client_user *who, int64_t expires_ms, const struct err *err);

struct authority {
    bool open; // a local run: a peer on a Unix socket needs no token, its processes connect there and nowhere else
    void *ctx;
    // May the owner of this token call workers in the namespace (create workergroups/call), and with code of its own
    // (create workergroups/code, or create workergroups, which is to choose what their pods run)? Answers once, later
    // or at once (inside the call; then it returns 0), unless canceled. token NULL: of a peer that needs none.
    uint64_t (*client)(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx);
    void (*cancel)(void *ctx, uint64_t id); // may be NULL where every answer comes at once
    // Which pod's token is this? ERR_UNAUTHORIZED; ERR_UNAVAILABLE: cannot be told now, the peer shall come again.
    // NULL: there are no pods.
    int (*pod)(void *ctx, const char *token, struct arena *a, struct pod_claims *ret, struct err *err);
    // ERR_UNAUTHORIZED: forged or of another cluster. Whether it was used before is the gateway's to know. NULL: there
    // are no tickets, worker processes are who they say.
    int (*ticket)(void *ctx, const char *text, struct ticket *ret, struct err *err);
    // Deterministic: the same ticket gives the same text. May be NULL where there are no tickets.
    const char *(*ticket_text)(void *ctx, const struct ticket *t, struct arena *a);
    // The secret that the processes of the ticket's attempt share, as hex; NULL = none.
    const char *(*peer_secret)(void *ctx, const struct ticket *t, struct arena *a);
    // With which another replica shows that it is one. Returns NULL: the key is not there yet. NULL: there are no
    // others.
    const char *(*replica_proof)(void *ctx, const char *name, const char *instance, struct arena *a);
};
