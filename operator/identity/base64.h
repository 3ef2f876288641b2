// SPDX-License-Identifier: Apache-2.0
// Base64 of RFC 4648. It is strict: each content has exactly one text. Standard (section 4, padded) is for Secrets,
// URL-safe (section 5, without padding) for tokens. Pure.
#pragma once

#include "common/base/arena.h"

#include <stdint.h>

enum base64_kind { BASE64_STANDARD, BASE64_URL };

// Returns NULL if the text is not base64 of that kind. A NUL follows the *ret_len bytes.
uint8_t *base64_decode(enum base64_kind kind, const char *text, size_t len, struct arena *a, size_t *ret_len);
char *base64_encode(enum base64_kind kind, const void *bytes, size_t len, struct arena *a);
