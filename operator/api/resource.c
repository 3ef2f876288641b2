// SPDX-License-Identifier: Apache-2.0
#include "operator/api/resource.h"

#include "common/base/map.h"
#include "common/base/mem.h"

#include <string.h>

// The one table of names of the process. It only grows, up to RESOURCE_MAX names, so an id means the same everywhere.
enum { NAME_MAX_LEN = 320 }; // a qualified name has at most 253 + 1 + 63 characters
static struct {
    struct map ids; // id + 1, as a pointer
    const char *names[RESOURCE_MAX];
    int n;
} registry;

static int registry_add(const char *name)
{
    int id = registry.n++;
    registry.names[id] = xstrdup(name);
    map_set(&registry.ids, name, (void *)(uintptr_t)(id + 1));
    return id;
}

static void registry_init(void)
{
    static const char *const fixed[] = {
        [RESOURCE_CPU] = "cpu",
        [RESOURCE_MEMORY] = "memory",
        [RESOURCE_PODS] = "pods",
        [RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
        [RESOURCE_GPU] = RESOURCE_GPU_NAME,
        [RESOURCE_OTHER] = "(a resource that no node offers)",
    };
    if (registry.n)
        return;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        registry_add(fixed[i]);
}

int resource_id_n(const char *name, size_t len, bool offered)
{
    char copy[NAME_MAX_LEN + 1];
    registry_init();
    if (len > NAME_MAX_LEN)
        return RESOURCE_OTHER;
    memcpy(copy, name, len);
    copy[len] = '\0';
    uintptr_t id = (uintptr_t)map_get(&registry.ids, copy);
    if (id)
        return (int)id - 1;
    return registry.n < (offered ? RESOURCE_MAX : RESOURCE_MAX / 2) ? registry_add(copy) : RESOURCE_OTHER;
}

int resource_id(const char *name)
{
    return resource_id_n(name, strlen(name), false);
}

const char *resource_name(int id)
{
    registry_init();
    return id >= 0 && id < registry.n ? registry.names[id] : "?";
}

int resource_count(void)
{
    registry_init();
    return registry.n;
}

int64_t resources_get(const struct resources *r, int id)
{
    for (size_t i = 0; i < r->n && r->items[i].id <= id; i++)
        if (r->items[i].id == id)
            return r->items[i].milli;
    return 0;
}

int64_t amount_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

static int64_t larger(int64_t a, int64_t b)
{
    return MAX(a, b);
}

static void merge(struct resources *to, const struct resources *from, int64_t (*join)(int64_t, int64_t),
                  struct arena *a)
{
    if (!from->n)
        return;
    struct resource *items = arena_array(a, to->n + from->n, sizeof *items);
    size_t n = 0, i = 0, j = 0;
    while (i < to->n || j < from->n) {
        if (j == from->n || (i < to->n && to->items[i].id < from->items[j].id)) {
            items[n++] = to->items[i++];
        } else if (i == to->n || from->items[j].id < to->items[i].id) {
            items[n++] = from->items[j++];
        } else {
            items[n++] = (struct resource){to->items[i].id, join(to->items[i].milli, from->items[j].milli)};
            i++;
            j++;
        }
        n -= items[n - 1].milli == 0;
    }
    *to = (struct resources){items, n};
}

void resources_add(struct resources *to, const struct resources *from, struct arena *a)
{
    merge(to, from, amount_add, a);
}

void resources_max(struct resources *to, const struct resources *from, struct arena *a)
{
    merge(to, from, larger, a);
}

bool resources_equal(const struct resources *a, const struct resources *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->items[i].id != b->items[i].id || a->items[i].milli != b->items[i].milli)
            return false;
    return true;
}
