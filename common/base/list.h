// SPDX-License-Identifier: Apache-2.0
// An intrusive doubly linked list: a `struct list` is both the head and the link inside an element.
#pragma once

#include "common/base/mem.h"

#include <stdbool.h>

struct list {
    struct list *prev, *next;
};

#define LIST_INIT(name) ((struct list){&(name), &(name)})

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_before(struct list *at, struct list *l)
{
    l->prev = at->prev;
    l->next = at;
    at->prev->next = l;
    at->prev = l;
}

static inline void list_append(struct list *head, struct list *l)
{
    list_insert_before(head, l);
}

// Safe to call twice.
static inline void list_remove(struct list *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

static inline struct list *list_pop(struct list *head)
{
    struct list *l = head->next;
    if (l == head)
        return NULL;
    list_remove(l);
    return l;
}

// Moves all elements of `from` before `at`, in their order.
static inline void list_splice(struct list *at, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = at->prev;
    from->prev->next = at;
    at->prev->next = from->next;
    at->prev = from->prev;
    list_init(from);
}

// `pos` may be removed in the body.
#define LIST_FOREACH(pos, head)                                                   \
    for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head); \
         pos = pos##_next, pos##_next = pos->next)
