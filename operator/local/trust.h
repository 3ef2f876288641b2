// SPDX-License-Identifier: Apache-2.0
// The authority of a local run. Everybody who reaches its Unix socket may call, and may be one of its processes. Other
// clients need the token of the run.
#pragma once

#include "operator/gateway/authority.h"

enum { TRUST_TOKEN_SIZE = 33 };

// `token` is borrowed, and may be filled later. NULL or empty: no other clients may call.
struct authority trust_authority(const char *token);
// Writes 16 random bytes as hex. Returns false if the kernel has none.
bool trust_draw(char ret[TRUST_TOKEN_SIZE]);
