// SPDX-License-Identifier: Apache-2.0
// The authority of a local run. Everybody who reaches its Unix socket may call, and may be one of its processes.
// Everybody else needs the run's token.
#pragma once

#include "operator/gateway/authority.h"

enum { TRUST_TOKEN_SIZE = 33 };

// `token` is borrowed, and may be drawn later; NULL or empty: nobody from elsewhere.
struct authority trust_authority(const char *token);
// 16 random bytes as hex; false where the kernel has none.
bool trust_draw(char ret[TRUST_TOKEN_SIZE]);
