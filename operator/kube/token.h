// SPDX-License-Identifier: Apache-2.0
// The bearer token: a fixed one, or a file that is rotated. It never appears in a message.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct token {
    const char *file;    // borrowed, NULL = fixed
    char *text;          // owned, NULL = none
    int64_t read_ms;     // mono
    uint32_t generation; // counts the changes
};

// ERR_INVALID or the reason why the file cannot be read.
int token_init(struct token *t, const char *text, const char *file, int64_t now_ms, struct err *err);
void token_done(struct token *t);
bool token_due(const struct token *t, int64_t now_ms); // a file is read again once a minute
// Reads the file again; true if the token has changed. One that cannot be read now leaves the old token in place.
bool token_refresh(struct token *t, int64_t now_ms);
