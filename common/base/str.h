// SPDX-License-Identifier: Apache-2.0
// Strings: NUL-terminated, owned by an arena, an object or the caller, as each header says.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_eq(const char *a, const char *b); // NULL equals only NULL
bool str_empty(const char *s);             // NULL or ""
bool str_starts(const char *s, const char *prefix);
int str_cmp(const char *a, const char *b); // NULL sorts first
// Numbers inside names compare as numbers: n2 < n10. A total order (ties broken by strcmp).
int str_cmp_natural(const char *a, const char *b);
// The whole string is a decimal number in range, no sign but '-', no blanks.
bool str_to_i64(const char *s, int64_t *ret);
bool str_utf8_valid(const char *s, size_t n);
// Bytes of the valid UTF-8 sequence (RFC 3629, section 4) that starts at text, 0 if there is none in n bytes.
size_t str_utf8_len(const char *text, size_t n);
// Two digits for each byte, then a NUL; returns `out`.
char *str_hex(const void *bytes, size_t n, char *out);
uint64_t str_hash(const char *s, size_t n); // FNV-1a, 64 bits: stable over machines and versions
