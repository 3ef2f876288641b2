// SPDX-License-Identifier: Apache-2.0
// There is one item per key. It exists while the key is queued, processed or delayed, or has failures. Ready keys form
// a list in the order in which they came. Delayed keys form a binary heap by time.
#include "operator/runtime/workqueue.h"

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 5, BACKOFF_MAX_MS = 5 * 60 * 1000, BACKOFF_DOUBLINGS = 16, NOT_DELAYED = -1 };

struct queue_item {
    struct list link; // in `ready` or `running`
    bool dirty;       // must be processed (again)
    bool processing;
    int failures;
    ptrdiff_t heap_index; // or NOT_DELAYED
    int64_t due_ms;       // when the delay ends
    uint64_t seq;         // the order of items with equal due_ms
    int64_t dirty_ms, started_ms;
    char key[];
};

struct workqueue {
    const struct clock *clock;
    struct map items;
    struct list ready, running;
    struct queue_item **heap;
    size_t n_heap, heap_size;
    size_t n_dirty, n_running;
    uint64_t adds, retries, seq;
    void (*taken)(void *ctx, int64_t queued_ms);
    void (*done)(void *ctx, int64_t worked_ms);
    void *ctx;
};

struct workqueue *workqueue_new(const struct clock *clock)
{
    struct workqueue *q = xcalloc(1, sizeof *q);
    q->clock = clock;
    list_init(&q->ready);
    list_init(&q->running);
    return q;
}

void workqueue_free(struct workqueue *q)
{
    if (!q)
        return;
    size_t i = 0;
    void *item;
    while (map_next(&q->items, &i, NULL, &item))
        free(item);
    map_done(&q->items);
    free(q->heap);
    free(q);
}

static struct queue_item *queue_item_get(struct workqueue *q, const char *key)
{
    struct queue_item *it = map_get(&q->items, key);
    if (it)
        return it;
    size_t n = strlen(key) + 1;
    it = xcalloc(1, sizeof *it + n);
    memcpy(it->key, key, n);
    list_init(&it->link);
    it->heap_index = NOT_DELAYED;
    map_set(&q->items, key, it);
    return it;
}

static void queue_item_release(struct workqueue *q, struct queue_item *it)
{
    if (it->dirty || it->processing || it->failures || it->heap_index != NOT_DELAYED)
        return;
    map_del(&q->items, it->key);
    free(it);
}

static bool heap_before(const struct queue_item *a, const struct queue_item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->seq < b->seq;
}

static void heap_put(struct workqueue *q, size_t i, struct queue_item *it)
{
    q->heap[i] = it;
    it->heap_index = (ptrdiff_t)i;
}

static void heap_up(struct workqueue *q, size_t i, struct queue_item *it)
{
    for (; i && heap_before(it, q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_put(q, i, q->heap[(i - 1) / 2]);
    heap_put(q, i, it);
}

static void heap_down(struct workqueue *q, size_t i, struct queue_item *it)
{
    for (size_t child; (child = 2 * i + 1) < q->n_heap; i = child) {
        if (child + 1 < q->n_heap && heap_before(q->heap[child + 1], q->heap[child]))
            child++;
        if (!heap_before(q->heap[child], it))
            break;
        heap_put(q, i, q->heap[child]);
    }
    heap_put(q, i, it);
}

static void heap_push(struct workqueue *q, struct queue_item *it)
{
    if (q->n_heap == q->heap_size) {
        q->heap_size = q->heap_size ? q->heap_size * 2 : 16;
        q->heap = xrealloc(q->heap, q->heap_size, sizeof(struct queue_item *));
    }
    heap_up(q, q->n_heap++, it);
}

static struct queue_item *heap_pop(struct workqueue *q)
{
    struct queue_item *first = q->heap[0], *last = q->heap[--q->n_heap];
    first->heap_index = NOT_DELAYED;
    if (last != first)
        heap_down(q, 0, last);
    return first;
}

static void queue_item_add(struct workqueue *q, struct queue_item *it)
{
    if (it->dirty)
        return;
    it->dirty = true;
    it->dirty_ms = clock_mono_ms(q->clock);
    q->n_dirty++;
    q->adds++;
    if (!it->processing)
        list_append(&q->ready, &it->link);
}

void workqueue_add(struct workqueue *q, const char *key)
{
    queue_item_add(q, queue_item_get(q, key));
}

static void queue_item_add_after(struct workqueue *q, struct queue_item *it, int64_t ms)
{
    int64_t due = clock_mono_ms(q->clock) + ms;
    if (ms <= 0) {
        queue_item_add(q, it);
    } else if (it->heap_index == NOT_DELAYED) {
        it->due_ms = due;
        it->seq = q->seq++;
        heap_push(q, it);
    } else if (due < it->due_ms) {
        it->due_ms = due;
        heap_up(q, (size_t)it->heap_index, it);
    }
}

void workqueue_add_after(struct workqueue *q, const char *key, int64_t ms)
{
    queue_item_add_after(q, queue_item_get(q, key), ms);
}

int64_t workqueue_add_backoff(struct workqueue *q, const char *key)
{
    struct queue_item *it = queue_item_get(q, key);
    int64_t ms = MIN((int64_t)BACKOFF_FIRST_MS << MIN(it->failures, BACKOFF_DOUBLINGS), (int64_t)BACKOFF_MAX_MS);
    it->failures++;
    q->retries++;
    queue_item_add_after(q, it, ms);
    return ms;
}

void workqueue_forget(struct workqueue *q, const char *key)
{
    struct queue_item *it = map_get(&q->items, key);
    if (!it)
        return;
    it->failures = 0;
    queue_item_release(q, it);
}

void workqueue_clear(struct workqueue *q)
{
    size_t i = 0;
    void *value;
    struct map kept = MAP_INIT;
    q->n_heap = 0;
    while (map_next(&q->items, &i, NULL, &value)) {
        struct queue_item *it = value;
        q->n_dirty -= it->dirty;
        it->dirty = false;
        it->failures = 0;
        it->heap_index = NOT_DELAYED;
        if (it->processing) {
            map_set(&kept, it->key, it);
            continue;
        }
        list_remove(&it->link);
        free(it);
    }
    map_done(&q->items);
    q->items = kept;
}

void workqueue_retry(struct workqueue *q)
{
    size_t n = 0;
    struct queue_item **failed = xcalloc(q->n_heap + 1, sizeof *failed);
    for (size_t i = 0; i < q->n_heap; i++)
        if (q->heap[i]->failures)
            failed[n++] = q->heap[i];
    for (size_t i = 0; i < n; i++) {
        failed[i]->failures = 0;
        failed[i]->due_ms = 0;
        heap_up(q, (size_t)failed[i]->heap_index, failed[i]);
    }
    free(failed);
}

static void wake_delayed(struct workqueue *q)
{
    int64_t now = clock_mono_ms(q->clock);
    while (q->n_heap && q->heap[0]->due_ms <= now)
        queue_item_add(q, heap_pop(q));
}

const char *workqueue_get(struct workqueue *q)
{
    wake_delayed(q);
    struct list *l = list_pop(&q->ready);
    if (!l)
        return NULL;
    struct queue_item *it = CONTAINER_OF(l, struct queue_item, link);
    it->dirty = false;
    it->processing = true;
    it->started_ms = clock_mono_ms(q->clock);
    q->n_dirty--;
    q->n_running++;
    list_append(&q->running, &it->link);
    if (q->taken)
        q->taken(q->ctx, it->started_ms - it->dirty_ms);
    return it->key;
}

void workqueue_done(struct workqueue *q, const char *key)
{
    struct queue_item *it = map_get(&q->items, key);
    if (!it || !it->processing)
        return;
    it->processing = false;
    q->n_running--;
    list_remove(&it->link);
    if (q->done)
        q->done(q->ctx, clock_mono_ms(q->clock) - it->started_ms);
    if (it->dirty)
        list_append(&q->ready, &it->link);
    queue_item_release(q, it);
}

int64_t workqueue_wait_ms(const struct workqueue *q)
{
    return q->n_heap ? MAX(q->heap[0]->due_ms - clock_mono_ms(q->clock), 0) : -1;
}

void workqueue_stats(const struct workqueue *q, struct workqueue_stats *ret)
{
    *ret = (struct workqueue_stats){
        .depth = q->n_dirty, .processing = q->n_running, .delayed = q->n_heap, .adds = q->adds, .retries = q->retries};
    int64_t now = clock_mono_ms(q->clock);
    for (const struct list *l = q->running.next; l != &q->running; l = l->next) {
        int64_t ms = now - CONTAINER_OF(l, struct queue_item, link)->started_ms;
        ret->unfinished_ms += ms;
        ret->longest_running_ms = MAX(ret->longest_running_ms, ms);
    }
}

void workqueue_observe(struct workqueue *q, void (*taken)(void *ctx, int64_t queued_ms),
                       void (*done)(void *ctx, int64_t worked_ms), void *ctx)
{
    q->taken = taken;
    q->done = done;
    q->ctx = ctx;
}
