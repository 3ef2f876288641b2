// SPDX-License-Identifier: Apache-2.0
// Leader election with a Lease, by client-go's rules: a Lease lasts 15 s, is renewed every 2 s, and is lost when no
// renewal has succeeded for 10 s. Time is measured from the moment when *we* saw the record change, so clocks need not
// agree.
#pragma once

#include "operator/kube/kube_client.h"

struct leader;

// What has happened since it told last, often nothing; in the order of the members.
struct leader_news {
    const struct err *error; // NULL = none
    bool lost;               // stop deciding at once; it takes part in the election again, and may be elected again
    bool elected;
    // This holder asks for a lease of that length, and has not renewed it for so long that it is taken before. NULL =
    // no.
    const char *disbelieved;
    int64_t disbelieved_ms;
    const char *holder, *watches; // who leads now, and acts on these namespaces ("" = not said). NULL = no news
    bool recovered;               // after errors: the API server answers again
};

struct leader_options {
    const char *ns, *name;                         // of the Lease
    const char *identity;                          // unique a process: pod name and a random part
    const char *watches;                           // the namespaces that we act on: one, or "*"
    int64_t lease_ms, renew_deadline_ms, retry_ms; // 0 = 15000, 10000, 2000
    void (*news)(void *ctx, const struct leader_news *news);
    void *ctx;
    uint64_t seed;
};

// The strings are borrowed.
struct leader *leader_start(struct loop *loop, struct kube_client *client, const struct leader_options *options);
// Until when what a leader decides may be written, by the monotonic clock; 0 = it does not lead.
int64_t leader_writes_until_ms(const struct leader *l);
// Gives the lease back (best effort, bounded by 2 s), then calls released. Frees itself.
void leader_release(struct leader *l, void (*released)(void *ctx), void *ctx);
void leader_free(struct leader *l); // at once, without giving back
