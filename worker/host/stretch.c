// SPDX-License-Identifier: Apache-2.0
#include "worker/host/stretch.h"

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

struct stretch {
    struct list link;
    struct area *area; // the call's; after stretch_end(), this struct holds a reference
    char *data;
    char *from; // whole pages
    size_t len;
    bool held, called; // held: by the program; called: by the call
    bool clean;
};

static struct {
    pthread_mutex_t lock;
    struct list all, over; // over: only the area must still be released, on the loop's thread
    atomic_bool some_over;
    size_t kept;
    int pagemap; // of this process
    bool child;
} stretches = {.pagemap = -1,
               .lock = PTHREAD_MUTEX_INITIALIZER,
               .all = LIST_INIT(stretches.all),
               .over = LIST_INIT(stretches.over)};

static uintptr_t page(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static bool is_free(const char *from, size_t len)
{
    LIST_FOREACH(l, &stretches.all) {
        const struct stretch *s = CONTAINER_OF(l, struct stretch, link);
        if (from < s->from + s->len && s->from < from + len)
            return false;
    }
    return true;
}

// Writes to each page without a change, so a write of another thread is not lost.
static void own(const struct stretch *s)
{
    for (size_t at = 0; at < s->len; at += page())
        __atomic_fetch_or(s->from + at, 0, __ATOMIC_RELAXED);
}

// Returns true also if the kernel does not tell.
static bool was_written(const struct stretch *s)
{
    uint64_t pages[LOOK_AT];
    size_t n = s->len / page();
    bool written = stretches.pagemap < 0;
    for (size_t at = 0; at < n && !written; at += LOOK_AT) {
        size_t now = MIN(n - at, (size_t)LOOK_AT) * sizeof *pages;
        off_t offset = (off_t)(((uintptr_t)s->from / page() + at) * sizeof *pages);
        written = pread(stretches.pagemap, pages, now, offset) != (ssize_t)now;
        for (size_t i = 0; i < now / sizeof *pages && !written; i++)
            written = pages[i] & PAGE_IS_THERE && !(pages[i] & PAGE_IS_OF_FILE);
    }
    return written;
}

// Makes the pages show the shared memory again, for the next arguments.
static void clean(const struct stretch *s)
{
    if (!was_written(s) || madvise(s->from, s->len, MADV_DONTNEED) == 0)
        return;
    off_t offset = s->from - s->area->own; // the pages are locked: new ones replace them
    if (mmap(s->from, s->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, s->area->fd, offset) ==
        MAP_FAILED)
        abort(); // old values would look like new ones
}

struct stretch *stretch_new(struct area *a, const char *data, size_t len)
{
    if (!a->own)
        return NULL;
    size_t at = (size_t)(data - a->base), begin = at / page() * page();
    struct stretch n = {.area = a,
                        .data = a->own + at,
                        .from = a->own + begin,
                        .len = (at + len + page() - 1) / page() * page() - begin,
                        .held = true,
                        .called = true};
    struct stretch *s = NULL;
    pthread_mutex_lock(&stretches.lock);
    if (stretches.kept < STRETCH_KEPT_MAX && is_free(n.from, n.len)) {
        s = xmalloc(sizeof *s);
        *s = n;
        list_append(&stretches.all, &s->link);
    }
    pthread_mutex_unlock(&stretches.lock);
    if (s)
        clean(s); // if mlockall() was called, all pages count as written
    return s;
}

char *stretch_data(const struct stretch *s)
{
    return s->data;
}

void stretch_settle(struct stretch *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&stretches.lock);
    s->clean = !s->held;
    pthread_mutex_unlock(&stretches.lock);
    if (s->clean)
        clean(s);
    else // if it is let go in between, stretch_end() cleans it
        own(s);
}

void stretch_let_go(struct stretch *s)
{
    pthread_mutex_lock(&stretches.lock);
    s->held = false;
    if (!s->called && !stretches.child) {
        clean(s);
        stretches.kept -= s->len;
        list_remove(&s->link);
        list_append(&stretches.over, &s->link);
        atomic_store(&stretches.some_over, true);
    }
    pthread_mutex_unlock(&stretches.lock);
}

static void free_those_over(void)
{
    struct list *l;
    if (!atomic_load(&stretches.some_over))
        return;
    pthread_mutex_lock(&stretches.lock);
    while ((l = list_pop(&stretches.over))) {
        struct stretch *s = CONTAINER_OF(l, struct stretch, link);
        area_unref(s->area);
        free(s);
    }
    atomic_store(&stretches.some_over, false);
    pthread_mutex_unlock(&stretches.lock);
}

void stretch_end(struct stretch *s)
{
    free_those_over();
    if (!s)
        return;
    pthread_mutex_lock(&stretches.lock);
    s->called = false;
    if (s->held) {
        area_ref(s->area);
        stretches.kept += s->len;
    } else {
        if (!s->clean)
            clean(s);
        list_remove(&s->link);
    }
    bool held = s->held;
    pthread_mutex_unlock(&stretches.lock);
    if (!held)
        free(s);
}

// Does what stretch_settle() has not done yet. A stretch that the program let go is skipped: nobody needs it, and it
// may be clean already.
static void own_all(void)
{
    LIST_FOREACH(l, &stretches.all) {
        const struct stretch *s = CONTAINER_OF(l, struct stretch, link);
        if (s->held && s->called)
            own(s);
    }
}

void stretch_keep_all(void)
{
    pthread_mutex_lock(&stretches.lock);
    own_all();
    pthread_mutex_unlock(&stretches.lock);
}

// The child has its own page tables. If the parent made a page its own later, the child would not see that, and the
// owner would change the page.
static void before_fork(void)
{
    pthread_mutex_lock(&stretches.lock);
    own_all();
}

static void after_fork(void)
{
    pthread_mutex_unlock(&stretches.lock);
}

static void in_child(void)
{
    stretches.child = true;
    pthread_mutex_unlock(&stretches.lock);
}

void stretch_install(void)
{
    stretches.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    pthread_atfork(before_fork, after_fork, in_child);
}
