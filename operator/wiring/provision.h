// SPDX-License-Identifier: Apache-2.0
// Creates and deletes WorkerGroups and PlacementGroups for clients, if the client itself could: each request asks the
// API server. While a session lasts, an annotation of its objects is renewed again and again. The leader deletes
// objects that nobody renews (exec/abandoned.h), so neither the client nor this replica has to be alive for that. If
// the same user repeats the same request at any replica, that replica takes the object over.
#pragma once

#include "operator/gateway/provisioner.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

enum { PROVISION_RENEW_MS = 30 * 1000 };

struct provisioning;

// All are borrowed and must outlive it; stores by enum kind.
struct provisioning *provision_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                   int64_t renew_ms);
void provision_free(struct provisioning *d); // after the gateway; who still waits is not answered. Accepts NULL
struct provisioner provision_provisioner(struct provisioning *d);
