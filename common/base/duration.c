// SPDX-License-Identifier: Apache-2.0
#include "common/base/duration.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

// Returns a number above the limit if it is too long.
static int64_t read_number(const char **text)
{
    int64_t n = 0;
    for (; **text >= '0' && **text <= '9'; ++*text)
        n = MIN(n * 10 + (**text - '0'), (int64_t)DURATION_MAX_MS + 1);
    return n;
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}};
    int64_t sum = 0;
    do {
        const char *begin = text;
        int64_t n = read_number(&text);
        size_t i = 0;
        while (i < ARRAY_LEN(units) && !str_starts(text, units[i].name))
            i++;
        if (text == begin || i == ARRAY_LEN(units))
            return false;
        text += strlen(units[i].name);
        sum += n * units[i].ms;
    } while (*text && sum <= DURATION_MAX_MS);
    *ret_ms = sum;
    return sum <= DURATION_MAX_MS;
}
