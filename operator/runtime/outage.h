// SPDX-License-Identifier: Apache-2.0
// Finds out whether the API server is away. A replica that takes part in an election sees that from its Lease. This
// module is for replicas without an election, and for the time before it. A failed watch can have other causes, so the
// module asks the API server until it answers.
#pragma once

#include "operator/kube/kube_client.h"

enum { OUTAGE_ASK_MS = 1000, OUTAGE_PATIENCE_MS = 3000 };

struct outage;

// `ns` is the namespace in which WorkerGroups may be listed, "" = all; borrowed. The loop calls on_over() when the API
// server answers again, after it did not for away_ms.
struct outage *outage_new(struct loop *loop, struct kube_client *client, const char *ns,
                          void (*on_over)(void *ctx, int64_t away_ms), void *ctx);
void outage_free(struct outage *o); // call it after the client is freed; accepts NULL
void outage_suspect(struct outage *o);
