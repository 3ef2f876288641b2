// SPDX-License-Identifier: Apache-2.0
// Identifies the peers of a cluster. It implements the authority of operator/gateway with the API server's help:
// clients by TokenReview and SubjectAccessReview, pods by their projected token, worker processes by tickets that all
// replicas can read. It also has the keys of the operator's own endpoint.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/identity/vault.h"

struct identity;

// The client must outlive the result. The options are copied. The keyring also uses their seed, on_error and ctx.
struct identity *identity_new(struct loop *loop, struct kube_client *client, const struct vault_options *options);
// Do not call it from a callback. Callbacks that still wait are not called.
void identity_free(struct identity *i);
// For the owner, which tells the vault to read the Secret and to stop.
struct vault *identity_vault(const struct identity *i);
// Call it if the API server answers again after errors. It repeats the failed requests at once.
void identity_retry_now(struct identity *i);
struct authority identity_authority(struct identity *i); // valid as long as the identity
