// SPDX-License-Identifier: Apache-2.0
// The data of the Secret that holds all keys of an install: what is in it, and what has to be written into it. Pure but
// for the kernel's random numbers.
//   install.key   32 random bytes: tickets and peer secrets are derived from it
//   ca.crt, ca.key   an authority of our own, 10 years
//   tls.crt, tls.key   the certificate of the operator's endpoint, 90 days, renewed when two thirds are over
// Certificates without a ca.key are somebody else's (cert-manager's): they are used and never written.
#ifndef CADRE_IDENTITY_KEYS_H
#define CADRE_IDENTITY_KEYS_H

#include "operator/identity/certificate.h"
#include "operator/identity/ticket.h"

struct keys {
    uint8_t install[INSTALL_KEY_SIZE];
    bool has_install;
    const char *resource_version;
    const char *ca_cert, *ca_key, *cert, *key; // PEM, NULL = missing
};

// The Secret as the API server gives it. ERR_INVALID names the entry that cannot be.
int keys_decode(const char *secret, size_t len, struct arena *a, struct keys *ret, struct err *err);

// *ret: the keys with all that was missing or due, for those DNS names (more in the certificate do no harm).
// *ret_patch: the merge patch that writes it, unless the Secret has changed meanwhile; NULL = nothing to write.
// ERR_INVALID: what somebody has put there cannot be used.
int keys_complete(const struct keys *k, struct certificate_names names, int64_t now_ms, struct arena *a,
                  struct keys *ret, const char **ret_patch, struct err *err);

#endif
