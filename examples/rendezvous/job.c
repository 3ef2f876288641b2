// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int job_waited_s(const struct job *job)
{
    return (int)((now_ms() - job->deadline + (int64_t)job->timeout_s * 1000) / 1000);
}

void job_say(const struct job *job, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("rank %d: ", job->rank);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

bool job_poll(const struct job *job, struct pollfd *fds, nfds_t n, int64_t until)
{
    fds[0] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    int64_t left = (until < job->deadline ? until : job->deadline) - now_ms();
    int ready = poll(fds, n, left > 0 ? (int)left : 0);
    if (ready > 0 && fds[0].revents) {
        job_say(job, "told to stop before the roll-call was complete");
        exit(128 + SIGTERM);
    }
    return ready > 0;
}

bool number_parse(const char *text, long min, long max, int *ret)
{
    char *end;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || !isdigit((unsigned char)*text) || *end || errno || value < min || value > max)
        return false;
    *ret = (int)value;
    return true;
}

bool name_copy(char *to, const char *from)
{
    if (!from || !*from || strlen(from) >= NAME_SIZE)
        return false;
    for (const char *c = from; *c; c++)
        if (!isgraph((unsigned char)*c))
            return false;
    memcpy(to, from, strlen(from) + 1);
    return true;
}
