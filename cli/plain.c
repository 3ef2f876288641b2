// SPDX-License-Identifier: Apache-2.0
#include "cli/plain.h"

void plain_putc(FILE *out, char c)
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
        plain_putc(out, text[i]);
}
