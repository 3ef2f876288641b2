// SPDX-License-Identifier: Apache-2.0
// Foreign text on a terminal: output of workers must not move the cursor or set the title. A control character other
// than newline and tab becomes two characters, such as ^[ for ESC.
#pragma once

#include <stddef.h>
#include <stdio.h>

void plain_print(FILE *out, const char *text, size_t len);
// On one line: a blank after each comma and colon, none elsewhere, and a newline at the end.
void plain_print_json(FILE *out, const char *text, size_t len);
