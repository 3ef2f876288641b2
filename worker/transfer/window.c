// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/window.h"

#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/base/rand.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

// Yama in Linux: with scope 1, only parents may read a process, unless it allows others. Without Yama, the user
// decides.
static bool must_be_allowed(void)
{
    char scope = '0';
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, &scope, 1);
    close(fd);
    return n == 1 && scope == '1';
}

static void show(const struct blocks *b, size_t i, struct window_block *ret)
{
    const struct block *block = &b->list[i];
    struct err ignored = ERR_INIT;
    *ret = (struct window_block){.kind = WINDOW_MEMORY, .at = (uintptr_t)block->data};
    if (block->on_device)
        ret->kind = block->len && device_export(b->gpu->device, block->data, &ret->handle, &ignored) == 0
                        ? WINDOW_HANDLE
                        : WINDOW_HIDDEN;
}

struct window *window_new(const struct blocks *b)
{
    struct window *w = xcalloc(1, sizeof *w + b->n * sizeof *w->blocks);
    struct rand r;
    rand_seed_system(&r);
    w->word[0] = rand_u64(&r) | 1;
    w->word[1] = rand_u64(&r);
    w->n = b->n;
    for (size_t i = 0; i < b->n; i++)
        show(b, i, &w->blocks[i]);
    if (must_be_allowed())
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    return w;
}

struct window *window_new_room(const struct blocks *b)
{
    struct window *w = window_new(b);
    for (size_t i = 0; i < b->n; i++)
        w->blocks[i].kind = WINDOW_ROOM;
    return w;
}

void window_end(struct window *w)
{
    if (!w)
        return;
    volatile uint64_t *word = w->word; // another process reads it
    word[0] = 0;
    atomic_thread_fence(memory_order_seq_cst); // before the program writes to its blocks again
    if (must_be_allowed())
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    free(w);
}

// Reads the boot id of the kernel: no other running kernel has the same.
static void read_host(char out[WINDOW_HOST_SIZE])
{
    char text[36] = "";
    size_t n = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    memset(out, 0, WINDOW_HOST_SIZE);
    if (fd < 0)
        return;
    ssize_t len = read(fd, text, sizeof text);
    close(fd);
    for (ssize_t i = 0; i < len; i++) { // "8f0c9a52-...": 32 digits
        const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
        if (!digit || !text[i] || n == 2 * WINDOW_HOST_SIZE)
            continue;
        out[n / 2] = (char)((out[n / 2] << 4) | (digit - digits));
        n++;
    }
}

void window_place(struct window_place *ret)
{
    struct stat s;
    *ret = (struct window_place){.pid = (uint32_t)getpid()};
    read_host(ret->host);
    if (stat("/proc/self/ns/pid", &s) == 0)
        ret->pids = s.st_ino;
}

void window_show(const struct window *w, struct window_place *ret)
{
    ret->window = (uintptr_t)w;
    memcpy(ret->word, w->word, sizeof ret->word);
}

bool window_place_is_same(const struct window_place *a, const struct window_place *b)
{
    return memcmp(a->host, b->host, sizeof a->host) == 0 && a->pids == b->pids && a->pid == b->pid;
}

void window_place_write(const struct window_place *p, char out[WINDOW_PLACE_SIZE])
{
    memcpy(out, p->host, WINDOW_HOST_SIZE);
    out += WINDOW_HOST_SIZE;
    le_put_u64(out, p->pids);
    le_put_u32(out + 8, p->pid);
    le_put_u64(out + 12, p->window);
    le_put_u64(out + 20, p->word[0]);
    le_put_u64(out + 28, p->word[1]);
}

void window_place_read(const char in[WINDOW_PLACE_SIZE], struct window_place *ret)
{
    memcpy(ret->host, in, WINDOW_HOST_SIZE);
    in += WINDOW_HOST_SIZE;
    ret->pids = le_get_u64(in);
    ret->pid = le_get_u32(in + 8);
    ret->window = le_get_u64(in + 12);
    ret->word[0] = le_get_u64(in + 20);
    ret->word[1] = le_get_u64(in + 28);
}

static int by_machine(const void *x, const void *y)
{
    const struct window_place *a = *(const struct window_place *const *)x, *b = *(const struct window_place *const *)y;
    int hosts = memcmp(a->host, b->host, sizeof a->host);
    return hosts ? hosts : (a->pids > b->pids) - (a->pids < b->pids);
}

static bool is_unknown(const struct window_place *p)
{
    static const char nowhere[WINDOW_HOST_SIZE];
    return memcmp(p->host, nowhere, sizeof nowhere) == 0;
}

const struct transfer_place *window_places(const struct window_place *p, size_t n, struct arena *a)
{
    const struct window_place **sorted = arena_array(a, n, sizeof *sorted);
    struct transfer_place *places = arena_array(a, n, sizeof *places), last = {0, 0};
    for (size_t i = 0; i < n; i++)
        sorted[i] = &p[i];
    qsort(sorted, n, sizeof *sorted, by_machine);
    for (size_t i = 0; i < n; i++) {
        bool alone = i == 0 || is_unknown(sorted[i]);
        last.node += alone || memcmp(sorted[i]->host, sorted[i - 1]->host, WINDOW_HOST_SIZE) != 0;
        last.pod += alone || by_machine(&sorted[i], &sorted[i - 1]) != 0;
        places[sorted[i] - p] = last;
    }
    return places;
}
