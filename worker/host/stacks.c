// SPDX-License-Identifier: Apache-2.0
#include "worker/host/stacks.h"

#include "common/base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 500, TRIES = 50 };

static struct {
    int signo, fd;
    pthread_t thread;
    sem_t written;
} stacks = {.fd = -1};

static void on_written(int signo)
{
    (void)signo;
    sem_post(&stacks.written);
}

void stacks_install(int signo, int fd)
{
    const struct sigaction action = {.sa_handler = on_written, .sa_flags = SA_RESTART | SA_ONSTACK};
    stacks.thread = pthread_self();
    stacks.fd = fd;
    if (signo && sem_init(&stacks.written, 0, 0) == 0 && sigaction(signo, &action, NULL) == 0)
        stacks.signo = signo;
}

static bool await(void)
{
    struct timespec end;
    int r;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += WAIT_MS * 1000L * 1000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do
        r = sem_timedwait(&stacks.written, &end);
    while (r < 0 && errno == EINTR);
    return r == 0;
}

static int ask(struct err *err)
{
    while (sem_trywait(&stacks.written) == 0) // drop the post of an earlier request that came too late
        ;
    if (ftruncate(stacks.fd, 0) < 0 || lseek(stacks.fd, 0, SEEK_SET) < 0 ||
        pthread_kill(stacks.thread, stacks.signo) != 0)
        return err_set(err, ERR_IO, "the stacks cannot be asked for: %s", strerror(errno));
    return await() ? 0 : err_set(err, ERR_TIMEOUT, "the main thread takes no signals, so it does not show its stacks");
}

static void read_file(struct buf *out)
{
    char piece[4096];
    ssize_t n;
    while (out->len < STACKS_MAX && (n = pread(stacks.fd, piece, sizeof piece, (off_t)out->len)) > 0)
        buf_append(out, piece, MIN((size_t)n, STACKS_MAX - out->len));
}

int stacks_read(struct buf *out, struct err *err)
{
    int r = stacks.signo ? 0 : err_set(err, ERR_INVALID, "only workers in Python show the stacks of their threads");
    // While the program's handler raises the second signal, it is not installed for a moment. Then nothing is written.
    for (int i = 0; i < TRIES && r == 0 && !out->len; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        r = ask(err);
        if (r == 0)
            read_file(out);
    }
    return r;
}
