// SPDX-License-Identifier: Apache-2.0
// The kernel's numbers about running processes.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_memory {
    double rss, anon, peak; // MiB: VmRSS, RssAnon, VmHWM
};

int64_t proc_now_us(void);                                // monotonic
double proc_cpu_s(pid_t pid);                             // user and system time so far; 0 if there is no such process
struct proc_memory proc_memory(pid_t pid);                // zeros if there is no such process
const char *proc_name(pid_t pid, char *ret, size_t size); // at most 15 characters of the program's name; returns ret
double proc_load(void);                                   // of the machine, average of the last minute
