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
// The Secret may have changed: it is read now.
void identity_look(struct identity *i);
// The API server answers again after errors: what could not be read is asked for at once.
void identity_hurry(struct identity *i);
// Before the process ends: the Secret is looked at once more, and filled again where keys are gone. 2 s at most.
void identity_stop(struct identity *i);
bool identity_idle(const struct identity *i);            // after that: it is over
struct authority identity_authority(struct identity *i); // of use as long as the identity is
