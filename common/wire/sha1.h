// SPDX-License-Identifier: Apache-2.0
// SHA-1 (RFC 3174), only because the websocket handshake requires it. It proves nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE 20

void sha1(const void *data, size_t len, uint8_t out[SHA1_SIZE]); // at most 256 MiB
