// SPDX-License-Identifier: Apache-2.0
// Who is who in a cluster. It implements the authority of operator/gateway with the API server's help: clients by
// TokenReview and SubjectAccessReview, pods by their projected token, worker processes by tickets that all replicas can
// read. It also has the keys of the operator's own endpoint.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/identity/vault.h"

struct identity;

struct identity_options {
    const char *secret_ns, *secret_name; // the Secret with the keys of the install
    struct certificate_names names;      // of the operator's endpoint: DNS names and addresses
    const char *audience;                // NULL = "cadre"
    const char *issuer;                  // that pods' tokens must name; NULL = any that has the cluster's keys
    uint64_t seed;
    int64_t reread_ms;          // of the Secret, as vault.h's
    bool (*trusted)(void *ctx); // as vault.h's
    // The keys for TLS and for whom to trust: the first ones, and whenever one has changed.
    void (*on_keys)(void *ctx, const struct vault_keys *keys);
    void (*on_filled)(void *ctx, const char *what);     // for the log: keys were put back or made; may be NULL
    void (*on_error)(void *ctx, const struct err *err); // for the log; what failed is tried again
    void *ctx;
};

// The client must outlive it; the options are copied.
struct identity *identity_new(struct loop *loop, struct kube_client *client, const struct identity_options *options);
// Not from inside a callback. Who still waits for an answer is not called.
void identity_free(struct identity *i);
// The Secret may have changed: it is read now.
void identity_look(struct identity *i);
// The API server answers again after errors: what could not be read is asked for at once.
void identity_hurry(struct identity *i);
// Before the process ends: the Secret is looked at once more, and filled again where keys are gone. 2 s at most.
void identity_stop(struct identity *i);
bool identity_idle(const struct identity *i);            // after that: it is over
struct authority identity_authority(struct identity *i); // of use as long as the identity is
