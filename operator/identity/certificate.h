// SPDX-License-Identifier: Apache-2.0
// Certificates as PEM text. It makes the operator's own CA and the certificates of its TLS endpoint, and reads
// certificates from elsewhere. ECDSA with P-256 and SHA-256. Pure except for the kernel's random numbers.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CERTIFICATE_DAY_MS (INT64_C(24) * 60 * 60 * 1000)
enum { CERTIFICATE_AUTHORITY_DAYS = 3650, CERTIFICATE_LEAF_DAYS = 90 };

struct certificate_pair { // PEM
    const char *cert, *key;
};

struct certificate_names { // DNS names and IP addresses
    const char *const *items;
    size_t n;
};

// New certificates are valid from an hour before now_ms (Unix time), because clocks differ. A leaf ends no later than
// its authority. ERR_INVALID: the authority cannot be used.
int certificate_make_authority(int64_t now_ms, struct arena *a, struct certificate_pair *ret, struct err *err);
int certificate_make_leaf(const struct certificate_pair *authority, struct certificate_names names, int64_t now_ms,
                          struct arena *a, struct certificate_pair *ret, struct err *err);

// Checks that the key matches the certificate. ERR_INVALID says what is wrong.
int certificate_check_authority(const struct certificate_pair *authority, struct err *err);

struct certificate_facts {
    int64_t from_ms, until_ms; // Unix time
    struct certificate_names names;
};
// Reads the first certificate in the text. ERR_INVALID.
int certificate_read(const char *pem, struct arena *a, struct certificate_facts *ret, struct err *err);

// Returns an id of the first certificate: the beginning of its SHA-256, in hex. The text around the certificate does
// not change the id. NULL: there is no certificate.
const char *certificate_id(const char *pem, struct arena *a);

// Checks that the key belongs to the first certificate, and that this certificate is valid now, for a TLS server, and
// from an authority in ca_pem. The other certificates in the text may lead there. ERR_INVALID says what is wrong.
int certificate_check(const struct certificate_pair *leaf, const char *ca_pem, int64_t now_ms, struct err *err);
