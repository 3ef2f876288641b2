// SPDX-License-Identifier: Apache-2.0
// Leader election with a Lease, by client-go's rules: a Lease lasts 15 s, is renewed every 2 s, and is lost when no
// renewal has succeeded for 10 s. It measures the time from the moment when *this process* saw the record change, so
// clocks need not agree.
#pragma once

#include "operator/kube/kube_client.h"

struct leader;

// The events since the last call. Often there are none. If there are several, they happened in the order of the
// members.
struct leader_news {
    const struct err *error; // NULL = none
    bool lost;               // stop deciding at once; it takes part in the election again, and may be elected again
    bool elected;
    // A holder whose record says that the Lease lasts disbelieved_ms. It has not renewed for long, so this replica
    // takes the Lease before that time is over. NULL = there is no such holder.
    const char *disbelieved;
    int64_t disbelieved_ms;
    const char *holder, *watches; // the new leader, and the namespaces that it acts on ("" = not known). NULL = no news
    bool restored;                // the record is older than before: somebody has restored a backup of etcd
    int64_t away_ms;              // the API server answers again, after it did not for this time; 0 = no such news
};

struct leader_options {
    const char *ns, *name;                         // of the Lease
    const char *identity;                          // unique for each process: name of the pod and a random part
    const char *watches;                           // the namespaces that this installation acts on: one, or "*"
    int64_t lease_ms, renew_deadline_ms, retry_ms; // 0 = 15000, 10000, 2000
    void (*news)(void *ctx, const struct leader_news *news);
    void *ctx;
    uint64_t seed;
};

// The strings are borrowed.
struct leader *leader_start(struct loop *loop, struct kube_client *client, const struct leader_options *options);
// Returns until when the leader may write its decisions, by the monotonic clock. 0 = it does not lead.
int64_t leader_writes_until_ms(const struct leader *l);
// Releases the Lease (best effort, at most 2 s), then calls `released`. Frees itself.
void leader_release(struct leader *l, void (*released)(void *ctx), void *ctx);
void leader_free(struct leader *l); // frees it at once, without releasing the Lease
