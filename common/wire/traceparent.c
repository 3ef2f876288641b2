// SPDX-License-Identifier: Apache-2.0
#include "common/wire/traceparent.h"

#include <string.h>

// n lower-case digits, not all of them zero unless `zero`.
static bool hex(const char *p, size_t n, bool zero)
{
    bool some = zero;
    for (size_t i = 0; i < n; i++) {
        if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f'))
            return false;
        some = some || p[i] != '0';
    }
    return some;
}

bool traceparent_valid(const char *text, size_t len)
{
    if (len < TRACEPARENT_LEN || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    if (!hex(text, 2, true) || memcmp(text, "ff", 2) == 0)
        return false;
    if (len > TRACEPARENT_LEN && (memcmp(text, "00", 2) == 0 || text[TRACEPARENT_LEN] != '-'))
        return false;
    return hex(text + 3, 32, false) && hex(text + 36, 16, false) && hex(text + 53, 2, true);
}

void traceparent_copy(char out[TRACEPARENT_LEN + 1], const char *text, size_t len)
{
    out[0] = '\0';
    if (!text || !traceparent_valid(text, len))
        return;
    memcpy(out, text, TRACEPARENT_LEN);
    out[TRACEPARENT_LEN] = '\0';
}
