// SPDX-License-Identifier: Apache-2.0
#include "common/base/cpus.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

unsigned cpus_of_quota(const char *text)
{
    char *end;
    long long quota = strtoll(text, &end, 10);
    long long period = end == text ? 0 : strtoll(end, NULL, 10);
    return quota <= 0 || period <= 0 ? 0 : (unsigned)MIN(MAX(quota / period, 1), 1 << 20);
}

static unsigned quota(void)
{
    char line[64], period[32];
    file_first_line("/sys/fs/cgroup/cpu.max", line, sizeof line);
    if (line[0])
        return cpus_of_quota(line);
    char both[sizeof line + sizeof period]; // cgroups of version 1
    file_first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line);
    file_first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period);
    snprintf(both, sizeof both, "%s %s", line, period);
    return cpus_of_quota(both);
}

unsigned cpus_available(void)
{
    cpu_set_t set;
    unsigned n = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1, q = quota();
    return q ? MIN(n, q) : n;
}
