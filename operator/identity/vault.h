// SPDX-License-Identifier: Apache-2.0
// Keeps the keys of the install, which all replicas share through one Secret, and remembers them. Every replica reads
// the Secret when it has changed (vault_look()) and follows it. It restores missing entries, and renews a certificate
// in time. Only a replica that remembers no keys creates new ones.
#pragma once

#include "operator/identity/certificate.h"
#include "operator/identity/ticket.h"
#include "operator/kube/kube_client.h"

struct vault;

struct vault_keys { // valid until the next on_keys
    const uint8_t *install;
    const char *ca_pem, *cert_pem, *key_pem;
    const char *id; // of what pods and processes trust: "1a2b3c4d5e6f-a1b2c3d4e5f6", the CA's and the install key's
    const uint8_t (*former)[INSTALL_KEY_SIZE]; // install keys that were in use before, the latest first
    size_t n_former;
};

struct vault_options {
    const char *ns, *name;          // of the Secret
    struct certificate_names names; // of the operator's endpoint
    int64_t reread_ms, retry_ms;    // 0 = an hour, and a second (doubling up to 5 s, or to reread_ms if it is less)
    int64_t stop_ms;                // how long the end may take, 0 = 2 s
    uint64_t seed;
    // Are there pods that trust keys which this vault has not seen, as far as is known? Then it waits 15 s (three times
    // reread_ms, if that is less) for another replica that remembers them, before it makes new ones. NULL: never.
    bool (*trusted)(void *ctx);
    void (*on_keys)(void *ctx, const struct vault_keys *keys); // the first ones, and whenever one has changed
    void (*on_filled)(void *ctx, const char *what);            // keys were put back or made, for the log; may be NULL
    // With which the Secret cannot be read, used or written now; it is tried again. What was read before stays in use.
    // The same one is told once a minute.
    void (*on_error)(void *ctx, const struct err *err);
    void *ctx;
};

// The client must outlive it; the options are copied.
struct vault *vault_new(struct loop *loop, struct kube_client *client, const struct vault_options *options);
void vault_free(struct vault *v);                               // not from inside a callback
void vault_look(struct vault *v);                               // the Secret may have changed: reads it now
void vault_hurry(struct vault *v);                              // after failures: the API server answers again
const struct vault_keys *vault_get_keys(const struct vault *v); // NULL: none yet

// Before the process ends: looks once more, puts back what is gone, and then no more. It takes stop_ms at most.
void vault_stop(struct vault *v);
bool vault_idle(const struct vault *v); // after that: it is over
