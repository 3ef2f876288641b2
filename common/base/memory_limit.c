// SPDX-License-Identifier: Apache-2.0
#include "common/base/memory_limit.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

size_t memory_limit_of(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    return end == text || n >= (unsigned long long)INT64_MAX / 2 ? 0
                                                                 : (size_t)n; // version 1 writes nearly 2^63 for none
}

static size_t limit_in(const char *path)
{
    char line[64];
    file_first_line(path, line, sizeof line);
    return memory_limit_of(line);
}

size_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t machine = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
    size_t group = limit_in("/sys/fs/cgroup/memory.max");
    if (!group)
        group = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return group && machine ? MIN(group, machine) : MAX(group, machine);
}

size_t memory_limit_parse(const char *text)
{
    static const struct {
        const char *suffix;
        unsigned long long factor;
    } units[] = {{"", 1},     {"Ki", 1ull << 10},    {"Mi", 1ull << 20},          {"Gi", 1ull << 30},
                 {"k", 1000}, {"M", 1000ull * 1000}, {"G", 1000ull * 1000 * 1000}};
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    unsigned long long n = strtoull(text, &end, 10);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (str_eq(end, units[i].suffix))
            return n <= (unsigned long long)INT64_MAX / units[i].factor ? (size_t)(n * units[i].factor) : 0;
    return 0;
}
