// SPDX-License-Identifier: Apache-2.0
#include "common/base/last_line.h"

#include "common/base/mem.h"

#include <stdbool.h>
#include <string.h>

enum { WORDS_MAX = 200 }; // bytes; lastFailure of a group has more

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

const char *last_line(const char *text, struct arena *a)
{
    text = text ? text : "";
    size_t end = strlen(text);
    while (end && is_blank(text[end - 1]))
        end--;
    size_t begin = end;
    while (begin && text[begin - 1] != '\n')
        begin--;
    size_t all = end - begin, n = MIN(all, (size_t)WORDS_MAX);
    while (n < all && ((unsigned char)text[begin + n] & 0xC0) == 0x80) // do not cut a character
        n--;
    char *words = arena_printf(a, "%.*s%s", (int)n, text + begin, n < all ? "..." : "");
    for (char *c = words; *c; c++) // the text goes into a table
        *c = is_blank(*c) ? ' ' : *c;
    return words + strspn(words, " ");
}
