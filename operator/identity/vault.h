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
    const char *id; // of the CA and the install key, which pods and processes trust: "1a2b3c4d5e6f-a1b2c3d4e5f6"
    const uint8_t (*former)[INSTALL_KEY_SIZE]; // install keys that were in use before, the latest first
    size_t n_former;
};

struct vault_options {
    const char *ns, *name;          // the Secret
    struct certificate_names names; // of the operator's endpoint
    int64_t reread_ms, retry_ms;    // 0 = an hour, and a second (doubling up to 5 s, or to reread_ms if it is less)
    int64_t stop_ms;                // how long vault_stop() may take, 0 = 2 s
    uint64_t seed;
    // Returns true if there seem to be pods that trust keys which this vault has not seen. Then it waits 15 s (three
    // times reread_ms, if that is less) for another replica that remembers these keys, before it makes new ones. NULL:
    // never.
    bool (*trusted)(void *ctx);
    void (*on_keys)(void *ctx, const struct vault_keys *keys); // the first keys, and each change
    void (*on_filled)(void *ctx, const char *what);            // keys were restored or made, for the log; may be NULL
    // The Secret cannot be read, used or written now. The vault tries again. Keys that it has read before stay in use.
    // It reports the same error once a minute.
    void (*on_error)(void *ctx, const struct err *err);
    void *ctx;
};

// The client must outlive the result. The options are copied.
struct vault *vault_new(struct loop *loop, struct kube_client *client, const struct vault_options *options);
void vault_free(struct vault *v);                               // do not call it from a callback
void vault_look(struct vault *v);                               // reads the Secret now, because it may have changed
void vault_retry_now(struct vault *v);                          // call it if the API server answers again
const struct vault_keys *vault_get_keys(const struct vault *v); // NULL: none yet

// Call it before the process ends. It reads the Secret once more, restores missing entries, and stops. It takes at most
// stop_ms.
void vault_stop(struct vault *v);
bool vault_idle(const struct vault *v); // true when vault_stop() has finished
