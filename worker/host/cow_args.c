// SPDX-License-Identifier: Apache-2.0
#include "worker/host/cow_args.h"

#include "common/base/mem.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOOK_AT = 512 };                         // pages at a time
#define PAGE_IS_OF_FILE (1ull << 61)            // /proc/self/pagemap: nobody has written to the page
#define PAGE_IS_THERE (1ull << 62 | 1ull << 63) // the page is in memory, or swapped out

struct cow_args {
    struct list link;
    struct area *area; // the call's; after cow_args_end(), this struct has a reference
    char *data;
    char *from; // whole pages
    size_t len;
    bool in_program, in_call; // who may still use it
    bool clean;
};

static struct {
    pthread_mutex_t lock;
    struct list all, over; // over: only the area must still be released, on the loop's thread
    atomic_bool some_over;
    size_t kept;
    int pagemap; // of this process
    bool child;
} mapped = {
    .pagemap = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .all = LIST_INIT(mapped.all), .over = LIST_INIT(mapped.over)};

static uintptr_t page(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static bool is_free(const char *from, size_t len)
{
    LIST_FOREACH(l, &mapped.all) {
        const struct cow_args *s = CONTAINER_OF(l, struct cow_args, link);
        if (from < s->from + s->len && s->from < from + len)
            return false;
    }
    return true;
}

// Writes to each page without a change, so a write of another thread is not lost.
static void own(const struct cow_args *s)
{
    for (size_t at = 0; at < s->len; at += page())
        __atomic_fetch_or(s->from + at, 0, __ATOMIC_RELAXED);
}

// Returns true also if the kernel does not tell.
static bool was_written(const struct cow_args *s)
{
    uint64_t pages[LOOK_AT];
    size_t n = s->len / page();
    bool written = mapped.pagemap < 0;
    for (size_t at = 0; at < n && !written; at += LOOK_AT) {
        size_t now = MIN(n - at, (size_t)LOOK_AT) * sizeof *pages;
        off_t offset = (off_t)(((uintptr_t)s->from / page() + at) * sizeof *pages);
        written = pread(mapped.pagemap, pages, now, offset) != (ssize_t)now;
        for (size_t i = 0; i < now / sizeof *pages && !written; i++)
            written = pages[i] & PAGE_IS_THERE && !(pages[i] & PAGE_IS_OF_FILE);
    }
    return written;
}

// Makes the pages show the shared memory again, for the next arguments.
static void clean(const struct cow_args *s)
{
    if (!was_written(s) || madvise(s->from, s->len, MADV_DONTNEED) == 0)
        return;
    off_t offset = s->from - s->area->own; // the pages are locked: new ones replace them
    if (mmap(s->from, s->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, s->area->fd, offset) ==
        MAP_FAILED)
        abort(); // old values would look like new ones
}

struct cow_args *cow_args_new(struct area *a, const char *data, size_t len)
{
    if (!a->own)
        return NULL;
    size_t at = (size_t)(data - a->base), begin = at / page() * page();
    struct cow_args n = {.area = a,
                         .data = a->own + at,
                         .from = a->own + begin,
                         .len = (at + len + page() - 1) / page() * page() - begin,
                         .in_program = true,
                         .in_call = true};
    struct cow_args *s = NULL;
    pthread_mutex_lock(&mapped.lock);
    if (mapped.kept < COW_ARGS_KEPT_MAX && is_free(n.from, n.len)) {
        s = xmalloc(sizeof *s);
        *s = n;
        list_append(&mapped.all, &s->link);
    }
    pthread_mutex_unlock(&mapped.lock);
    if (s)
        clean(s); // if mlockall() was called, all pages count as written
    return s;
}

char *cow_args_data(const struct cow_args *s)
{
    return s->data;
}

void cow_args_settle(struct cow_args *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&mapped.lock);
    s->clean = !s->in_program;
    pthread_mutex_unlock(&mapped.lock);
    if (s->clean)
        clean(s);
    else // if it is let go in between, cow_args_end() cleans it
        own(s);
}

void cow_args_let_go(struct cow_args *s)
{
    pthread_mutex_lock(&mapped.lock);
    s->in_program = false;
    if (!s->in_call && !mapped.child) {
        clean(s);
        mapped.kept -= s->len;
        list_remove(&s->link);
        list_append(&mapped.over, &s->link);
        atomic_store(&mapped.some_over, true);
    }
    pthread_mutex_unlock(&mapped.lock);
}

static void free_those_over(void)
{
    struct list *l;
    if (!atomic_load(&mapped.some_over))
        return;
    pthread_mutex_lock(&mapped.lock);
    while ((l = list_pop(&mapped.over))) {
        struct cow_args *s = CONTAINER_OF(l, struct cow_args, link);
        area_unref(s->area);
        free(s);
    }
    atomic_store(&mapped.some_over, false);
    pthread_mutex_unlock(&mapped.lock);
}

void cow_args_end(struct cow_args *s)
{
    free_those_over();
    if (!s)
        return;
    pthread_mutex_lock(&mapped.lock);
    s->in_call = false;
    if (s->in_program) {
        area_ref(s->area);
        mapped.kept += s->len;
    } else {
        if (!s->clean)
            clean(s);
        list_remove(&s->link);
    }
    bool in_program = s->in_program;
    pthread_mutex_unlock(&mapped.lock);
    if (!in_program)
        free(s);
}

// Does the rest of cow_args_settle(). It skips arguments that the program let go: nobody needs them, and they may be
// clean already.
static void own_all(void)
{
    LIST_FOREACH(l, &mapped.all) {
        const struct cow_args *s = CONTAINER_OF(l, struct cow_args, link);
        if (s->in_program && s->in_call)
            own(s);
    }
}

void cow_args_keep_all(void)
{
    pthread_mutex_lock(&mapped.lock);
    own_all();
    pthread_mutex_unlock(&mapped.lock);
}

// The child has its own page tables. If the parent made a page its own later, the child would not see that, and the
// owner would change the page.
static void before_fork(void)
{
    pthread_mutex_lock(&mapped.lock);
    own_all();
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mapped.lock);
}

static void in_child(void)
{
    mapped.child = true;
    pthread_mutex_unlock(&mapped.lock);
}

void cow_args_install(void)
{
    mapped.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    pthread_atfork(before_fork, after_fork, in_child);
}
