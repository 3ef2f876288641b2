// SPDX-License-Identifier: Apache-2.0
#include "cli/plain.h"

#include "common/base/json_scan.h"

static void put(FILE *out, char c)
{
    unsigned char u = (unsigned char)c;
    if ((u < ' ' && c != '\n' && c != '\t') || u == 0x7f) {
        fputc('^', out);
        u ^= 0x40;
    }
    fputc(u, out);
}

void plain_print(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        put(out, text[i]);
}

void plain_print_json(FILE *out, const char *text, size_t len)
{
    const char *end = text + len, *behind;
    for (const char *p = text; p < end; p = behind) {
        behind = *p == '"' ? json_string_end(p, end) : p + 1;
        if (!behind)
            behind = end;
        if (json_is_space(*p))
            continue;
        for (const char *c = p; c < behind; c++)
            put(out, *c);
        if (*p == ',' || *p == ':')
            fputc(' ', out);
    }
    fputc('\n', out);
}
