// SPDX-License-Identifier: Apache-2.0
// Text of others on a terminal: what workers say must not move the cursor or set the title. A control character but
// newline and tab becomes two, such as ^[ for ESC.
#pragma once

#include <stddef.h>
#include <stdio.h>

void plain_putc(FILE *out, char c);
void plain_print(FILE *out, const char *text, size_t len);
