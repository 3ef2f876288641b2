// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/window_view.h"

#include "common/base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int read_at(const struct window_view *v, uint64_t at, void *out, size_t len)
{
    struct iovec here = {out, len}, there = {(void *)(uintptr_t)at, len};
    return process_vm_readv(v->pid, &here, 1, &there, 1, 0) == (ssize_t)len ? 0 : ERR_GONE;
}

static int read_window(struct window_view *v, size_t blocks, struct err *err)
{
    struct window head;
    if (read_at(v, v->window, &head, sizeof head) < 0)
        return err_set(err, ERR_UNAVAILABLE, "its memory cannot be read: %s", strerror(errno));
    if (memcmp(head.word, v->word, sizeof v->word) != 0 || head.n != blocks)
        return err_set(err, ERR_UNAVAILABLE, "process %d is another one", (int)v->pid);
    v->blocks = xcalloc(blocks + 1, sizeof *v->blocks);
    v->n = blocks;
    if (blocks && read_at(v, v->window + sizeof head, v->blocks, blocks * sizeof *v->blocks) < 0)
        return err_set(err, ERR_UNAVAILABLE, "its memory cannot be read: %s", strerror(errno));
    return 0;
}

static bool is_near(const struct window_place *where, const struct window_place *here)
{
    static const char nowhere[WINDOW_HOST_SIZE];
    return where->window && memcmp(where->host, here->host, sizeof here->host) == 0 && where->pids == here->pids &&
           memcmp(where->host, nowhere, sizeof nowhere) != 0;
}

int window_view_open(struct window_view *v, const struct window_place *where, const struct window_place *here,
                     size_t blocks, struct err *err)
{
    *v = (struct window_view){.pid = (pid_t)where->pid, .process = -1, .window = where->window};
    if (!is_near(where, here))
        return err_set(err, ERR_UNAVAILABLE, "it is not in this machine and container");
    memcpy(v->word, where->word, sizeof v->word);
    v->process = (int)syscall(SYS_pidfd_open, v->pid, 0);
    return v->process < 0 ? err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno)) : read_window(v, blocks, err);
}

void window_view_close(struct window_view *v)
{
    if (v->process >= 0)
        close(v->process);
    free(v->blocks);
    *v = (struct window_view){.process = -1};
}

static bool has_ended(const struct window_view *v)
{
    struct pollfd p = {.fd = v->process, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

bool window_view_is_there(const struct window_view *v)
{
    uint64_t word[2] = {0};
    return read_at(v, v->window, word, sizeof word) == 0 && memcmp(word, v->word, sizeof word) == 0 && !has_ended(v);
}

bool window_view_may_act(const struct window_view *v)
{
    uint64_t word[2] = {0};
    if (has_ended(v))
        return false;
    if (read_at(v, v->window, word, sizeof word) == 0)
        return memcmp(word, v->word, sizeof word) == 0;
    return errno == ESRCH;
}
