// SPDX-License-Identifier: Apache-2.0
// Certificates as PEM text: our own CA, certificates of the operator's TLS endpoint, and the content of certificates
// from elsewhere. ECDSA with P-256 and SHA-256. Pure except for the kernel's random numbers.
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

// All start an hour before now_ms (Unix time), for clocks that do not agree. A leaf ends no later than its authority.
// ERR_INVALID: an authority that cannot be used.
int certificate_make_authority(int64_t now_ms, struct arena *a, struct certificate_pair *ret, struct err *err);
int certificate_make_leaf(const struct certificate_pair *authority, struct certificate_names names, int64_t now_ms,
                          struct arena *a, struct certificate_pair *ret, struct err *err);

// Does the key match the certificate? ERR_INVALID says what is wrong.
int certificate_check_authority(const struct certificate_pair *authority, struct err *err);

struct certificate_facts {
    int64_t from_ms, until_ms; // Unix time
    struct certificate_names names;
};
// Of the first certificate in the text. ERR_INVALID.
int certificate_read(const char *pem, struct arena *a, struct certificate_facts *ret, struct err *err);

// What stays the same as long as it is the same certificate, however the text around it is written: the beginning of
// the SHA-256 of the first one, in hex. NULL: there is none.
const char *certificate_id(const char *pem, struct arena *a);

// Is the key the first certificate's, and does that come from an authority of ca_pem (further certificates in the text
// lead there), for a TLS server, now? ERR_INVALID says what is wrong.
int certificate_check(const struct certificate_pair *leaf, const char *ca_pem, int64_t now_ms, struct err *err);
