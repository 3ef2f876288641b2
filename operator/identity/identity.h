// SPDX-License-Identifier: Apache-2.0
// Who is who in a cluster. It implements the authority of operator/gateway with the API server's help: clients by
// TokenReview and SubjectAccessReview, pods by their projected token, worker processes by tickets that all replicas can
// read. It also has the keys of the operator's own endpoint.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/identity/vault.h"

struct identity;

// The client must outlive it; the options are copied. Of the vault's, the seed, on_error and ctx serve the keyring,
// too.
struct identity *identity_new(struct loop *loop, struct kube_client *client, const struct vault_options *options);
// Not from inside a callback. Who still waits for an answer is not called.
void identity_free(struct identity *i);
// For its owner: to look at the Secret, and to stop.
struct vault *identity_vault(const struct identity *i);
// The API server answers again after errors: what could not be read is asked for at once.
void identity_hurry(struct identity *i);
struct authority identity_authority(struct identity *i); // of use as long as the identity is
