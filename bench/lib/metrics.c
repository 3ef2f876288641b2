// SPDX-License-Identifier: Apache-2.0
#include "bench/lib/metrics.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

double metrics_sum(const char *text, const char *family, const char *label)
{
    double total = 0;
    size_t len = strlen(family);
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        _cleanup_(free_p) char *copy = strndup(line, (size_t)(end - line));
        const char *value = copy ? strrchr(copy, ' ') : NULL;
        if (value && str_starts(copy, family) && copy[len] == '{' && strstr(copy, label))
            total += strtod(value, NULL);
    }
    return total;
}
