// SPDX-License-Identifier: Apache-2.0
// The bearer token: a fixed one, or one from a file that rotates. It never appears in a message.
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

// ERR_INVALID, or the error of reading the file.
int token_init(struct token *t, const char *text, const char *file, int64_t now_ms, struct err *err);
void token_done(struct token *t);
bool token_due(const struct token *t, int64_t now_ms); // true once a minute if there is a file: call token_refresh()
// Reads the file again. Returns true if the token has changed. If the file cannot be read, the old token stays.
bool token_refresh(struct token *t, int64_t now_ms);
