// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/device/fake_device.h"

#include "common/base/mem.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONTROL_SIZE = 4096, MEMORIES = 4096, STREAMS = 256, OPS = 4096, PATH_SIZE = 512, IDLE_NS = 200 * 1000 };
enum { PAGE = 4096, ILLEGAL_ADDRESS = 700 };

struct stream {
    bool used, apart;
    struct op ops[OPS]; // the oldest first
    size_t n;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct memory memories[MEMORIES];
static struct stream streams[STREAMS]; // [0] is the default one
static uint64_t last_number;
static int broken;
static bool running;
static char device_folder[PATH_SIZE]; // for the device's thread: getenv() must not run beside the test's setenv()

const char *fake_folder(void)
{
    const char *path = getenv("GPU_STAND_IN");
    return path ? path : "/nonexistent";
}

static int control_in(const char *folder, const char *word)
{
    char path[PATH_SIZE + sizeof "/control"], text[CONTROL_SIZE] = "\n";
    snprintf(path, sizeof path, "%s/control", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text + 1, sizeof text - 2) : 0;
    if (fd >= 0)
        close(fd);
    text[1 + MAX(n, (ssize_t)0)] = '\0';
    snprintf(path, sizeof path, "\n%s", word);
    size_t len = strlen(path);
    const char *line = text;
    while ((line = strstr(line, path)) && line[len] != ' ' && line[len] != '\n' && line[len])
        line += len;
    if (!line)
        return 0;
    return line[len] == ' ' ? (int)strtol(line + len, NULL, 10) : 1;
}

int stand_in_control(const char *word)
{
    return control_in(fake_folder(), word);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void fake_lock(void)
{
    pthread_mutex_lock(&mutex);
}

int fake_unlock(int code)
{
    pthread_mutex_unlock(&mutex);
    return code;
}

int fake_broken(void)
{
    return broken;
}

void fake_break(int code)
{
    broken = code;
}

// Memory

struct memory *fake_find(const void *at)
{
    const char *p = at;
    for (size_t i = 0; i < MEMORIES; i++)
        if (memories[i].address && p >= memories[i].address && p < memories[i].address + memories[i].len)
            return &memories[i];
    return NULL;
}

void *stand_in_memory(const void *at)
{
    const struct memory *m = fake_find(at); // the thread of the device has the lock
    return m ? m->view + ((const char *)at - m->address) : (void *)(uintptr_t)at;
}

struct memory *fake_memory_new(size_t len)
{
    for (size_t i = 0; i < MEMORIES; i++)
        if (!memories[i].address) {
            memories[i].len = len;
            return &memories[i];
        }
    abort();
}

static size_t whole_pages(size_t len)
{
    return (MAX(len, (size_t)1) + PAGE - 1) / PAGE * PAGE;
}

// An address that nobody can use, and the place where it can be used.
bool fake_map(struct memory *m, bool create)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", fake_folder(), m->file);
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0)
        return false;
    if (create && ftruncate(fd, (off_t)whole_pages(m->len)) != 0)
        abort();
    m->view = mmap(NULL, whole_pages(m->len), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    m->address = mmap(NULL, whole_pages(m->len), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    close(fd);
    if (m->view == MAP_FAILED || m->address == MAP_FAILED)
        abort();
    return true;
}

void fake_map_pinned(struct memory *m)
{
    m->address = m->view = mmap(NULL, whole_pages(m->len), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->address == MAP_FAILED)
        abort();
}

void fake_forget(struct memory *m)
{
    char path[PATH_SIZE];
    if (m->view != m->address)
        munmap(m->view, whole_pages(m->len));
    munmap(m->address, whole_pages(m->len));
    snprintf(path, sizeof path, "%s/%s", fake_folder(), m->file);
    if (m->file[0] && !m->imported)
        unlink(path);
    *m = (struct memory){NULL};
}

// Streams

static struct stream *stream_of(void *stream)
{
    struct stream *s = stream ? stream : &streams[0];
    if (stream && !s->used)
        abort(); // a test has found something: it is freed
    return s;
}

// The default stream waits for all others but those that are apart, and they for it.
static bool may_begin(size_t i)
{
    const struct op *op = &streams[i].ops[0];
    if (op->due_ns > now_ns())
        return false;
    for (size_t k = 0; k < STREAMS; k++)
        if (k != i && streams[k].n && (i == 0 || k == 0) && !streams[i].apart && !streams[k].apart &&
            streams[k].ops[0].number < op->number)
            return false;
    return true;
}

static bool turn_all(void)
{
    bool any = false;
    for (size_t i = 0; i < STREAMS; i++) {
        struct stream *s = &streams[i];
        while (s->n && may_begin(i) && s->ops[0].turn(s->ops[0].ctx ? s->ops[0].ctx : &s->ops[0])) {
            memmove(&s->ops[0], &s->ops[1], --s->n * sizeof s->ops[0]);
            any = true;
        }
    }
    return any;
}

static void *run_device(void *ctx)
{
    const struct timespec pause = {.tv_nsec = IDLE_NS};
    (void)ctx;
    for (;;) {
        fake_lock(); // so that a copy never begins that was asked for after "hang"
        bool any = !control_in(device_folder, "hang") && turn_all();
        fake_unlock(0);
        if (!any)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return NULL;
}

uint64_t fake_put(void *stream, struct op op)
{
    pthread_t thread;
    struct stream *s = stream_of(stream);
    snprintf(device_folder, sizeof device_folder, "%s", fake_folder());
    if (!running && pthread_create(&thread, NULL, run_device, NULL) == 0)
        pthread_detach(thread);
    running = true;
    if (s->n == OPS)
        abort();
    op.number = ++last_number;
    op.due_ns = now_ns() + (int64_t)stand_in_control("lag") * 1000;
    s->ops[s->n++] = op;
    return op.number;
}

void *fake_stream_new(bool apart)
{
    size_t i = 1;
    while (i < STREAMS && streams[i].used)
        i++;
    if (i == STREAMS)
        abort();
    streams[i].used = true;
    streams[i].apart = apart;
    return &streams[i];
}

void fake_stream_free(void *stream)
{
    ((struct stream *)stream)->used = false; // what is on it is still done
}

bool fake_idle(void *stream)
{
    size_t n = 0;
    if (stream)
        return !stream_of(stream)->n;
    for (size_t i = 0; i < STREAMS; i++)
        n += streams[i].n;
    return !n;
}

void fake_wait_idle(void *stream)
{
    const struct timespec pause = {.tv_nsec = IDLE_NS};
    while (!broken && !fake_idle(stream)) {
        fake_unlock(0);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        fake_lock();
    }
}

void stand_in_put(void *stream, bool (*turn)(void *ctx), void *ctx)
{
    fake_lock();
    (void)fake_put(stream, (struct op){.turn = turn, .ctx = ctx});
    fake_unlock(0);
}

void stand_in_drop(void *ctx)
{
    fake_lock();
    for (size_t i = 0; i < STREAMS; i++) {
        size_t kept = 0;
        for (size_t k = 0; k < streams[i].n; k++)
            if (streams[i].ops[k].ctx != ctx)
                streams[i].ops[kept++] = streams[i].ops[k];
        streams[i].n = kept;
    }
    fake_unlock(0);
}

static bool run_kernel(void *ctx)
{
    const struct op *op = ctx;
    const struct memory *m = fake_find(op->to);
    if (m && m->file[0])
        op->kernel(stand_in_memory(op->to), op->len, op->x);
    else
        broken = ILLEGAL_ADDRESS;
    return true;
}

void stand_in_launch(void (*kernel)(void *memory, size_t n, double x), void *memory, size_t n, double x, void *stream)
{
    fake_lock();
    (void)fake_put(stream, (struct op){.turn = run_kernel, .kernel = kernel, .to = memory, .len = n, .x = x});
    fake_unlock(0);
}
