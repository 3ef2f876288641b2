// SPDX-License-Identifier: Apache-2.0
// Finds where one JSON value ends, while its bytes arrive in any pieces, without parsing it: strings and brackets are
// followed, what is between them is left to the decoder. Pure.
#ifndef CADRE_KUBE_JSON_SKIP_H
#define CADRE_KUBE_JSON_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_skip {
    uint32_t depth;
    bool in_string, escaped, scalar;
};

static inline bool json_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Starts a value whose first byte is `first`; false if no value starts like that. Feed the bytes from `first` on.
bool json_skip_start(struct json_skip *s, char first);

// Returns how many of the bytes belong to the value; *ret_ended says that it ends there. A number or a word ends in
// front of the byte behind it.
size_t json_skip_feed(struct json_skip *s, const char *bytes, size_t n, bool *ret_ended);

#endif
