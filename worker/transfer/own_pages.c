// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/own_pages.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct page_range {
    uintptr_t from, to;
};

struct own_pages {
    struct page_range *ranges; // ascending; ranges that touch are one
    size_t n, size;
};

static void add(struct own_pages *p, uintptr_t from, uintptr_t to)
{
    if (p->n && p->ranges[p->n - 1].to == from) {
        p->ranges[p->n - 1].to = to;
        return;
    }
    if (p->n == p->size) {
        p->size = MAX(2 * p->size, (size_t)64);
        p->ranges = xrealloc(p->ranges, p->size, sizeof *p->ranges);
    }
    p->ranges[p->n++] = (struct page_range){from, to};
}

// "7f12-7f34 rw-p 00000000 00:00 0    [anon:...]": from, to, access, offset, device, inode, name.
static void take_line(struct own_pages *p, char *line)
{
    char *end, *fields[4];
    uintptr_t from = strtoull(line, &end, 16), to = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        end += strspn(end, " ");
        fields[i] = end;
        end += strcspn(end, " \n");
    }
    char *name = end + strspn(end, " ");
    bool plain = str_starts(fields[0], "rw-p ") && str_starts(fields[3], "0") && fields[3][1] != '\0' &&
                 strchr(" \n", fields[3][1]) && (*name == '\n' || *name == '\0' || str_starts(name, "[anon"));
    if (plain && to > from)
        add(p, from, to);
}

struct own_pages *own_pages_read(void)
{
    struct own_pages *p = xcalloc(1, sizeof *p);
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && getline(&line, &size, f) > 0)
        take_line(p, line);
    if (f)
        fclose(f);
    free(line);
    return p;
}

void own_pages_free(struct own_pages *p)
{
    if (!p)
        return;
    free(p->ranges);
    free(p);
}

bool own_pages_have(const struct own_pages *p, const void *data, size_t len)
{
    uintptr_t from = (uintptr_t)data, to = from + len;
    for (size_t i = 0; i < p->n && p->ranges[i].from <= from; i++)
        if (p->ranges[i].to >= to)
            return true;
    return false;
}
