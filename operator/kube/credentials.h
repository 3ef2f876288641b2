// SPDX-License-Identifier: Apache-2.0
// Checks certificates and keys before they are used: TLS itself would only say "bad certificate".
#pragma once

#include "operator/kube/config.h"

#include <stdint.h>

// ERR_INVALID names the part, its file and the reason: not there, not PEM, an encrypted key, a certificate without
// its key, a key that belongs to another certificate, expired (and when) or not valid yet. now_ms: Unix time.
int credentials_check(const struct kube_config *c, int64_t now_ms, struct err *err);
