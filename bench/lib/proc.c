// SPDX-License-Identifier: Apache-2.0
#include "bench/lib/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t proc_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static size_t file_read(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return n;
}

double proc_cpu_s(pid_t pid)
{
    enum { UTIME = 14, STIME = 15 }; // fields of proc(5), counted from 1
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file_read(path, text, sizeof text);
    char *at = strrchr(text, ')'); // the name before it may hold anything
    double ticks = 0;
    int field = 2;
    for (; at; at = strchr(at + 1, ' '), field++)
        if (field == UTIME || field == STIME)
            ticks += strtod(at, NULL);
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

static double kib_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

struct proc_memory proc_memory(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file_read(path, text, sizeof text);
    return (struct proc_memory){
        .rss = kib_after(text, "\nVmRSS:") / 1024,
        .anon = kib_after(text, "\nRssAnon:") / 1024,
        .peak = kib_after(text, "\nVmHWM:") / 1024,
    };
}

const char *proc_name(pid_t pid, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    file_read(path, ret, size);
    ret[strcspn(ret, "\n")] = '\0';
    return ret;
}

double proc_load(void)
{
    char text[64];
    file_read("/proc/loadavg", text, sizeof text);
    return strtod(text, NULL);
}
