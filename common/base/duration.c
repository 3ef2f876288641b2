// SPDX-License-Identifier: Apache-2.0
#include "common/base/duration.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

bool duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}};
    int64_t sum = 0, n;
    char number[16];
    do {
        size_t digits = strspn(text, "0123456789"), i = 0;
        if (digits == 0 || digits >= 8)
            return false;
        snprintf(number, sizeof number, "%.*s", (int)digits, text);
        text += digits;
        while (i < ARRAY_LEN(units) && !str_starts(text, units[i].name))
            i++;
        if (i == ARRAY_LEN(units) || !str_to_i64(number, &n))
            return false;
        text += strlen(units[i].name);
        sum += n * units[i].ms;
    } while (*text);
    *ret_ms = sum;
    return sum <= DURATION_MAX_MS;
}
