// SPDX-License-Identifier: Apache-2.0
#include "common/base/fiber.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __has_feature // clang's
#define __has_feature(name) 0
#endif

// The sanitizers must know on which stack the program is.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define asan_leave __sanitizer_start_switch_fiber
#define asan_arrive __sanitizer_finish_switch_fiber
#else
#define asan_leave(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#define asan_arrive(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define tsan_new() __tsan_create_fiber(0)
#define tsan_here() __tsan_get_current_fiber()
#define tsan_go(fiber) __tsan_switch_to_fiber(fiber, 0)
#define tsan_free(fiber) __tsan_destroy_fiber(fiber)
#else
#define tsan_new() NULL
#define tsan_here() NULL
#define tsan_go(fiber) ((void)(fiber))
#define tsan_free(fiber) ((void)(fiber))
#endif

#define STACK ((size_t)256 << 10) // enough, because no work recurses; untouched pages cost nothing

struct fiber {
    void (*fn)(void *ctx);
    void *ctx;
    char *stack; // after a page that nobody may touch
    size_t page;
    ucontext_t own, caller;
    size_t left; // that it may spend
    bool over;
    void *fake, *caller_fake; // AddressSanitizer's
    const void *caller_bottom;
    size_t caller_size;
    void *thread, *caller_thread; // ThreadSanitizer's
};

_Thread_local struct fiber *fiber_running;

struct fiber *fiber_new(void (*fn)(void *ctx), void *ctx)
{
    struct fiber *f = xcalloc(1, sizeof *f);
    f->fn = fn;
    f->ctx = ctx;
    f->page = (size_t)sysconf(_SC_PAGESIZE);
    f->stack = mmap(NULL, f->page + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (f->stack == MAP_FAILED || mprotect(f->stack, f->page, PROT_NONE) < 0)
        abort(); // like xmalloc()
    f->thread = tsan_new();
    return f;
}

static void leave(struct fiber *f)
{
    asan_leave(f->over ? NULL : &f->fake, f->caller_bottom, f->caller_size);
    tsan_go(f->caller_thread);
    if (f->over)
        setcontext(&f->caller);
    else
        swapcontext(&f->own, &f->caller);
    asan_arrive(f->fake, &f->caller_bottom, &f->caller_size);
}

static void begin(void)
{
    struct fiber *f = fiber_running;
    asan_arrive(NULL, &f->caller_bottom, &f->caller_size);
    f->fn(f->ctx);
    f->over = true;
    leave(f);
}

static void enter(struct fiber *f)
{
    asan_leave(&f->caller_fake, f->stack + f->page, STACK);
    f->caller_thread = tsan_here();
    tsan_go(f->thread);
    swapcontext(&f->caller, &f->own);
    asan_arrive(f->caller_fake, NULL, NULL);
}

static void prepare(struct fiber *f)
{
    getcontext(&f->own);
    f->own.uc_stack = (stack_t){.ss_sp = f->stack + f->page, .ss_size = STACK};
    f->own.uc_link = NULL;
    makecontext(&f->own, begin, 0);
}

bool fiber_run(struct fiber *f, size_t units)
{
    assert(!fiber_running && !f->over);
    bool fresh = !f->own.uc_stack.ss_sp;
    f->left = units;
    if (fresh)
        prepare(f);
    fiber_running = f;
    enter(f);
    fiber_running = NULL;
    if (!f->over)
        return false;
    tsan_free(f->thread);
    munmap(f->stack, f->page + STACK);
    free(f);
    return true;
}

void fiber_spent(size_t units)
{
    struct fiber *f = fiber_running;
    while (units >= f->left) {
        units -= f->left;
        leave(f);
    }
    f->left -= units;
}

void fiber_copy_long(void *to, const void *from, size_t len)
{
    for (size_t at = 0, n; at < len; at += n) {
        n = MIN(len - at, (size_t)FIBER_STEP);
        memcpy((char *)to + at, (const char *)from + at, n);
        fiber_spend(n);
    }
}

void fiber_zero_long(void *to, size_t len)
{
    for (size_t at = 0, n; at < len; at += n) {
        n = MIN(len - at, (size_t)FIBER_STEP);
        memset((char *)to + at, 0, n);
        fiber_spend(n);
    }
}

size_t fiber_strlen(const char *s)
{
    size_t len = 0, n;
    while ((n = strnlen(s + len, FIBER_STEP)) == FIBER_STEP) {
        len += n;
        fiber_spend(n);
    }
    return len + n;
}

bool fiber_equal(const void *a, const void *b, size_t len)
{
    bool equal = true;
    for (size_t at = 0, n; at < len && equal; at += n) {
        n = MIN(len - at, (size_t)FIBER_STEP);
        equal = memcmp((const char *)a + at, (const char *)b + at, n) == 0;
        fiber_spend(n);
    }
    return equal;
}
