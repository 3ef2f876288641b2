// SPDX-License-Identifier: Apache-2.0
// JSON for people: one line, a blank after each comma and colon.
#pragma once

#include <stddef.h>
#include <stdio.h>

void json_text_print(FILE *out, const char *text, size_t len); // and a newline
