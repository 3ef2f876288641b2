// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/oom.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int64_t read_counter(const char *root, const char *file)
{
    char path[PATH_MAX], line[128];
    int64_t n = -1;
    snprintf(path, sizeof path, "%s/%s", root, file);
    FILE *f = fopen(path, "re");
    while (f && n < 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (str_starts(line, "oom_kill ") && !str_to_i64(line + strlen("oom_kill "), &n))
            n = -1;
    }
    if (f)
        fclose(f);
    return n;
}

int64_t oom_kills(const char *root)
{
    int64_t n = read_counter(root, "memory.events");
    return n >= 0 ? n : read_counter(root, "memory/memory.oom_control");
}

bool oom_tell(struct oom *o, int64_t before)
{
    int64_t first = MAX(o->told, before);
    if (before < 0 || oom_kills(o->root) <= first)
        return false;
    o->told = first + 1;
    return true;
}
