// SPDX-License-Identifier: Apache-2.0
// Checks certificates and keys before they are used, because TLS itself only says "bad certificate".
#pragma once

#include "operator/kube/config.h"

#include <stdint.h>

// ERR_INVALID names the part, its file and the reason: it is missing, it is not PEM, the key is encrypted, the
// certificate has no key, the key belongs to another certificate, the certificate has expired (and when) or is not
// valid yet. now_ms: Unix time.
int credentials_check(const struct kube_config *c, int64_t now_ms, struct err *err);
