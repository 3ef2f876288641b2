// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/process.h"

#include "common/base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// Returns the beginning of a file of /proc as text; "" if it cannot be read.
static const char *read_proc(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = '\0';
    return text;
}

// Returns the n-th (from 0) of numbers that are separated by blanks.
static double field(const char *s, int n)
{
    for (; n > 0; n--) {
        s += strcspn(s, " ");
        s += strspn(s, " ");
    }
    return strtod(s, NULL);
}

static double count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return MAX(n - 3, 0); // ".", ".." and the directory itself
}

static double now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double start_time(void)
{
    char stat[1024];
    const char *end_of_name = strrchr(read_proc("/proc/self/stat", stat, sizeof stat), ')');
    if (!end_of_name)
        return 0;
    double since_boot = field(end_of_name + 2, 19) / (double)sysconf(_SC_CLK_TCK);
    return now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME) + since_boot;
}

static double cpu_seconds(void)
{
    struct rusage u = {0};
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void set(struct metrics *m, const char *name, const char *help, double v)
{
    metric_set(metrics_gauge(m, name, help, ""), v);
}

static void collect(void *metrics)
{
    struct metrics *m = metrics;
    char statm[256];
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    read_proc("/proc/self/statm", statm, sizeof statm);
    set(m, "process_virtual_memory_bytes", "Virtual memory size in bytes.", field(statm, 0) * page);
    set(m, "process_resident_memory_bytes", "Resident memory size in bytes.", field(statm, 1) * page);
    set(m, "process_open_fds", "Number of open file descriptors.", count_fds());
    set(m, "process_max_fds", "Maximum number of open file descriptors.", (double)files.rlim_cur);
    metric_set(metrics_counter(m, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", ""),
               cpu_seconds());
    struct metric *start =
        metrics_gauge(m, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.", "");
    if (metric_value(start) == 0) // it never changes
        metric_set(start, start_time());
}

static void on_turn(void *seconds, int64_t worked_us)
{
    metric_observe(seconds, (double)worked_us / 1e6);
}

void process_metrics(struct metrics *m, struct loop *loop)
{
    static const double buckets[] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5};
    metrics_on_collect(m, collect, m);
    loop_observe(loop, on_turn,
                 metrics_histogram(m, "cadre_loop_turn_seconds",
                                   "Duration of each turn of the event loop. Everything else waits meanwhile.", "",
                                   buckets, ARRAY_LEN(buckets)));
}
