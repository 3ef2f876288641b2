// SPDX-License-Identifier: Apache-2.0
// Finds out whether the API server is away, where no Lease tells: for a replica without an election, and before it
// takes part in one. A failed watch can have other causes. This module therefore asks the API server, until it answers.
#pragma once

#include "operator/kube/kube_client.h"

enum { OUTAGE_ASK_MS = 1000, OUTAGE_PATIENCE_MS = 3000 };

struct outage;

// ns: in which WorkerGroups may be listed, "" = all; borrowed. on_over: it did not answer, and does again. From the
// loop.
struct outage *outage_new(struct loop *loop, struct kube_client *client, const char *ns, void (*on_over)(void *ctx),
                          void *ctx);
void outage_free(struct outage *o); // after the client; accepts NULL
void outage_suspect(struct outage *o);
