// SPDX-License-Identifier: Apache-2.0
#include "cli/json_text.h"

#include "cli/plain.h"

#include <stdbool.h>
#include <string.h>

void json_text_print(FILE *out, const char *text, size_t len)
{
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            plain_putc(out, c);
            if (c == '\\' && i + 1 < len)
                plain_putc(out, text[++i]);
            in_string = c != '"';
        } else if (!strchr(" \t\r\n", c)) {
            plain_putc(out, c);
            if (c == ',' || c == ':')
                fputc(' ', out);
            in_string = c == '"';
        }
    }
    fputc('\n', out);
}
