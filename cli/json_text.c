// SPDX-License-Identifier: Apache-2.0
#include "cli/json_text.h"

#include <stdbool.h>
#include <string.h>

void json_text_print(FILE *out, const char *text, size_t len)
{
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            fputc(c, out);
            if (c == '\\' && i + 1 < len)
                fputc(text[++i], out);
            in_string = c != '"';
        } else if (!strchr(" \t\r\n", c)) {
            fputc(c, out);
            if (c == ',' || c == ':')
                fputc(' ', out);
            in_string = c == '"';
        }
    }
    fputc('\n', out);
}
