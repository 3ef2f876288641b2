// SPDX-License-Identifier: Apache-2.0
#include "cli/json_text.h"

#include "cli/plain.h"
#include "common/base/json_scan.h"

void json_text_print(FILE *out, const char *text, size_t len)
{
    const char *end = text + len, *behind;
    for (const char *p = text; p < end; p = behind) {
        behind = *p == '"' ? json_string_end(p, end) : p + 1;
        if (!behind)
            behind = end;
        if (json_is_space(*p))
            continue;
        for (const char *c = p; c < behind; c++)
            plain_putc(out, *c);
        if (*p == ',' || *p == ':')
            fputc(' ', out);
    }
    fputc('\n', out);
}
