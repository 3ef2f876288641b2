// SPDX-License-Identifier: Apache-2.0
// Creates and deletes WorkerGroups and PlacementGroups for clients, where they themselves could: the API server is
// asked about each. What goes with its session is renewed as long as the session is there: an annotation, written again
// and again. The leader deletes what nobody renews (exec/abandoned.h), so that neither a client nor this replica has to
// be alive for that; and the same request, made by the same user to any replica, takes such an object over.
#pragma once

#include "operator/gateway/provisioner.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

enum { PROVISION_RENEW_MS = 30 * 1000 };

struct provision_desk;

// All are borrowed and must outlive it.
struct provision_desk *provision_desk_new(struct loop *loop, struct kube_client *client, struct store *groups,
                                          struct store *placements, int64_t renew_ms);
void provision_desk_free(struct provision_desk *d); // after the gateway; who still waits is not answered. Accepts NULL
struct provisioner provision_desk_provisioner(struct provision_desk *d);
