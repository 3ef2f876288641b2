// SPDX-License-Identifier: Apache-2.0
// Creates and deletes WorkerGroups and PlacementGroups for clients that may do so themselves: each request asks the API
// server. While a session lasts, this module renews an annotation of the session's objects again and again. The leader
// deletes objects that nobody renews (exec/abandoned.h). This works even if the client and this replica have died. If
// the same user repeats the same request at any replica, that replica takes the object over.
#pragma once

#include "operator/gateway/provisioner.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

enum { PROVISION_RENEW_MS = 30 * 1000 };

struct provisioning;

// All arguments are borrowed, and must outlive it. `stores` is indexed by enum kind.
struct provisioning *provision_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                   int64_t renew_ms);
// Call it after the gateway is freed. Open requests get no answer. Accepts NULL.
void provision_free(struct provisioning *d);
struct provisioner provision_provisioner(struct provisioning *d);
