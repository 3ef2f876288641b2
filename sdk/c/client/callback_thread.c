// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/callback_thread.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct event {
    struct list link;
    bool line;                  // false: an event of the connection:
    bool up;                    //
    cadre_client_error *why;    // NULL = none; owned
    char *group, *ranks, *text; // owned; text NULL = none
    uint64_t dropped;
};

struct callback_thread {
    void (*on_connection)(void *ctx, int connected, const cadre_client_error *why);
    void (*on_output)(void *ctx, const cadre_client_output *line);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct list events;
    size_t n;
    uint64_t dropped;
    bool ending;
    bool alone; // nobody joins the thread
};

static void free_event(struct event *e)
{
    free(e->why);
    free(e->group);
    free(e->ranks);
    free(e->text);
    free(e);
}

static void tell(const struct callback_thread *t, const struct event *e)
{
    const cadre_client_output line = {e->group, e->ranks, e->text, e->dropped};
    if (e->line)
        t->on_output(t->ctx, &line);
    else
        t->on_connection(t->ctx, e->up, e->why);
}

static void destroy(struct callback_thread *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void *run(void *arg)
{
    struct callback_thread *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->ending || !list_empty(&t->events)) {
        struct list *l = list_empty(&t->events) ? NULL : list_pop(&t->events);
        if (!l) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        t->n--;
        pthread_mutex_unlock(&t->lock);
        struct event *e = CONTAINER_OF(l, struct event, link);
        tell(t, e);
        free_event(e);
        pthread_mutex_lock(&t->lock);
    }
    bool alone = t->alone;
    pthread_mutex_unlock(&t->lock);
    if (alone)
        destroy(t);
    return NULL;
}

static void add(struct callback_thread *t, struct event *e)
{
    pthread_mutex_lock(&t->lock);
    list_init(&e->link);
    if (e->line && t->n >= CALLBACKS_MAX) {
        t->dropped += e->dropped + 1;
        free_event(e);
    } else {
        if (e->line) {
            e->dropped += t->dropped;
            t->dropped = 0;
        }
        list_append(&t->events, &e->link);
        t->n++;
        pthread_cond_signal(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
}

static void on_connection(void *ctx, int connected, const cadre_client_error *why)
{
    struct event *e = xcalloc(1, sizeof *e);
    e->up = connected;
    if (why) {
        e->why = xmalloc(sizeof *e->why);
        *e->why = *why;
    }
    add(ctx, e);
}

static void on_output(void *ctx, const cadre_client_output *line)
{
    struct event *e = xcalloc(1, sizeof *e);
    e->line = true;
    e->group = xstrdup(line->group);
    e->ranks = xstrdup(line->ranks);
    e->text = line->text ? xstrdup(line->text) : NULL;
    e->dropped = line->dropped;
    add(ctx, e);
}

struct callback_thread *callback_thread_new(struct settings *s)
{
    if (!s->on_connection && !s->on_output)
        return NULL;
    struct callback_thread *t = xcalloc(1, sizeof *t);
    t->on_connection = s->on_connection;
    t->on_output = s->on_output;
    t->ctx = s->ctx;
    list_init(&t->events);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    s->on_connection = s->on_connection ? on_connection : NULL;
    s->on_output = s->on_output ? on_output : NULL;
    s->ctx = t;
    if (thread_start(&t->thread, run, t) != 0)
        abort();
    return t;
}

void callback_thread_free(struct callback_thread *t)
{
    if (!t)
        return;
    bool own = pthread_equal(pthread_self(), t->thread);
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    t->alone = own;
    pthread_cond_signal(&t->changed);
    pthread_t thread = t->thread;
    pthread_mutex_unlock(&t->lock);
    if (own) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    destroy(t);
}
