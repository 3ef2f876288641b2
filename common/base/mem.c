// SPDX-License-Identifier: Apache-2.0
#include "common/base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)4 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

void *mem_must(void *p)
{
    if (!p) {
        static const char msg[] = "cadre: out of memory\n";
        fwrite(msg, 1, sizeof msg - 1, stderr);
        abort();
    }
    return p;
}

// Uses pages of 2 MiB if the kernel allows it: mapping and unmapping them takes a tenth of the time.
static void *in_large_pages(char *p, size_t size)
{
    size_t skip = -(size_t)p % LARGE_PAGE;
    if (size >= LARGE)
        (void)madvise(p + skip, (size - skip) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
    return p;
}

void *xmalloc(size_t size)
{
    return in_large_pages(mem_must(malloc(size ? size : 1)), size);
}

void *xcalloc(size_t n, size_t size)
{
    return mem_must(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return mem_must(NULL);
    return in_large_pages(mem_must(realloc(p, total ? total : 1)), total);
}

char *xstrdup(const char *s)
{
    return mem_must(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return mem_must(n < 0 ? NULL : s);
}

void mem_keep(size_t block, size_t bytes, size_t step)
{
    // Once one of them is set, glibc no longer adapts the others: without this, `block` would stay at 128 KiB.
    mallopt(M_MMAP_THRESHOLD, (int)block);
    mallopt(M_TRIM_THRESHOLD, (int)bytes);
    mallopt(M_TOP_PAD, (int)step);
}

void free_p(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}
