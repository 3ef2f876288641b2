// SPDX-License-Identifier: Apache-2.0
// A short queue of writes. A repeat waits while its Event is being written, so that the patch finds the Event.

#include "operator/runtime/recorder.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/api/event.h"
#include "operator/kube/inquiry.h"
#include "operator/runtime/event_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTE_MAX = 1024,        // bytes; the API server refuses more
    NAME_MAX_LEN = 253,     // bytes in the name of an Event
    QUEUE_MAX = 256,        // writes that wait
    IN_FLIGHT_MAX = 4,      // few, because Events must not delay the work that they report
    SERIES_GAP_MS = 600000, // after a longer silence, a new Event begins
    TIMEOUT_MS = 30000,
    PATIENCE_MS = 2000, // how long an Event that is not a warning waits for a calm
    CALM_MS = 100, // a calm: so long without other requests of ours; requests about one object follow each other faster
};

// A write: first queued, then in progress.
struct event_write {
    struct list link;
    struct recorder *recorder;
    struct inquiry *inquiry; // NULL = queued
    char *ns, *name;         // of the Event
    char *body;
    bool patch, warning;
    int64_t queued_ms;
    char *object;
    uint64_t series_key, series_id;
};

struct recorder {
    struct kube_client *client;
    const struct clock *clock;
    struct loop_timer *pump;
    const char *controller, *instance;
    struct rand rand;
    struct event_history history;
    struct list queued, sent;
    int n_queued, n_sent;
    uint64_t own, others;                      // how many requests the client has sent so far
    int64_t calm_since_ms;                     // monotonic; when a request of others was in progress last
    struct metric *written, *failed, *dropped; // NULL if there is no registry
};

static void event_write_free(struct event_write *w)
{
    free(w->ns);
    free(w->name);
    free(w->body);
    free(w->object);
    free(w);
}

static uint64_t series_key(bool warning, const char *reason, const char *note)
{
    uint64_t h = str_hash(reason, strlen(reason)) * 31 + str_hash(note, strlen(note));
    h = h * 31 + warning;
    return h ? h : 1;
}

// Returns valid UTF-8 of at most NOTE_MAX bytes. Notes quote the output of programs.
static char *clean_note(const char *note)
{
    struct buf b = BUF_INIT(NOTE_MAX);
    for (size_t left = strlen(note), len; left && !b.over; note += MAX(len, 1), left -= MAX(len, 1)) {
        len = str_utf8_len(note, left);
        if (len)
            buf_append(&b, note, len);
        else
            buf_puts(&b, "\xef\xbf\xbd"); // U+FFFD
    }
    return buf_take(&b);
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err);

static bool is_calm(struct recorder *r, int64_t now)
{
    uint64_t others = kube_requests(r->client) - r->own;
    if (others != r->others || kube_in_flight(r->client) > r->n_sent)
        r->calm_since_ms = now;
    r->others = others;
    return now - r->calm_since_ms >= CALM_MS;
}

// An Event about a success costs the API server as much as the status of a pod does. While pods are created and
// deleted, it waits for them.
static bool should_wait(struct recorder *r, const struct event_write *w)
{
    int64_t now = clock_mono_ms(r->clock);
    return !is_calm(r, now) && !w->warning && now - w->queued_ms < PATIENCE_MS;
}

static void send_next(void *ctx)
{
    struct recorder *r = ctx;
    while (r->n_sent < IN_FLIGHT_MAX && !list_empty(&r->queued)) {
        struct event_write *w = CONTAINER_OF(r->queued.next, struct event_write, link);
        if (should_wait(r, w)) {
            loop_timer_arm(r->pump, CALM_MS);
            return;
        }
        list_remove(&w->link);
        r->n_queued--;
        struct kube_request request = {
            .verb = w->patch ? VERB_PATCH_MERGE : VERB_CREATE,
            .kind = KIND_EVENT,
            .ns = w->ns,
            .name = w->patch ? w->name : NULL,
            .body = w->body,
            .decided = true,
        };
        w->inquiry = inquiry_send(r->client, &request, TIMEOUT_MS, on_answer, w);
        if (!w->inquiry) { // the client is being freed
            metric_add(r->dropped, 1);
            event_write_free(w);
            continue;
        }
        list_append(&r->sent, &w->link);
        r->n_sent++;
        r->own++;
    }
}

static struct list *first_calm(struct recorder *r)
{
    struct list *at = r->queued.next;
    while (at != &r->queued && CONTAINER_OF(at, struct event_write, link)->warning)
        at = at->next;
    return at;
}

// Queues `w` for the series. Drops it if too many writes wait.
static void enqueue(struct recorder *r, struct series *s, struct event_write *w)
{
    if (r->n_queued >= QUEUE_MAX) {
        metric_add(r->dropped, 1);
        if (!w->patch)
            *s = (struct series){0}; // a repeat would have no Event to patch
        event_write_free(w);
        return;
    }
    s->busy = true;
    s->written = s->count;
    w->queued_ms = clock_mono_ms(r->clock);
    if (w->warning) // after other warnings, and before writes that can wait
        list_insert_before(first_calm(r), &w->link);
    else
        list_append(&r->queued, &w->link);
    r->n_queued++;
    loop_timer_arm(r->pump, 0);
}

static struct event_write *event_write_new(struct recorder *r, const struct event_object *object,
                                           const struct series *s, const char *ns, const char *name)
{
    struct event_write *w = xcalloc(1, sizeof *w);
    w->recorder = r;
    list_init(&w->link);
    w->ns = xstrdup(ns);
    w->name = xstrdup(name);
    w->object = xstrdup(object->key);
    w->series_key = s->key;
    w->series_id = s->id;
    return w;
}

static void patch_series(struct recorder *r, struct event_object *object, struct series *s, const char *ns,
                         const char *name)
{
    if (s->busy || !event_object_take_token(object, clock_mono_ms(r->clock)))
        return; // the next patch contains the count
    struct arena a = ARENA_INIT;
    struct event e = {.ns = ns, .name = name, .series_count = s->count, .series_last_ms = s->last_wall_ms};
    struct event_write *w = event_write_new(r, object, s, ns, name);
    w->patch = true;
    w->body = xstrdup(event_series_patch(&e, &a));
    arena_done(&a);
    enqueue(r, s, w);
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct event_write *w = ctx;
    struct recorder *r = w->recorder;
    struct event_object *object = event_history_find(&r->history, w->object);
    struct series *s = object ? event_object_series(object, w->series_key) : NULL;
    (void)response;
    list_remove(&w->link);
    r->n_sent--;
    metric_add(err->code ? r->failed : r->written, 1);
    if (s && s->id == w->series_id) {
        s->busy = false;
        if (err->code)
            *s = (struct series){0}; // the next one begins a new Event
        else if (s->count > s->written)
            patch_series(r, object, s, w->ns, w->name);
    }
    send_next(r);
    event_write_free(w);
}

static const char *event_name(const struct object *regarding, uint64_t id, char *name, size_t size)
{
    snprintf(name, size, "%.*s.%016" PRIx64, NAME_MAX_LEN - 17, regarding->meta.name, id);
    return name;
}

static const char *event_ns(const struct object *regarding)
{
    return str_empty(regarding->meta.ns) ? "default" : regarding->meta.ns;
}

static void create_event(struct recorder *r, struct event_object *object, struct series *s,
                         const struct object *regarding, bool warning, const char *reason, const char *note)
{
    const struct kind_info *kind = kind_info(regarding->kind);
    char name[NAME_MAX_LEN + 1];
    struct arena a = ARENA_INIT;
    struct event e = {
        .ns = event_ns(regarding),
        .name = event_name(regarding, s->id, name, sizeof name),
        .type = warning ? "Warning" : "Normal",
        .reason = reason,
        .action = "Reconcile",
        .note = note,
        .controller = r->controller,
        .instance = r->instance,
        .regarding_api_version = kind->api_version,
        .regarding_kind = kind->kind,
        .regarding_ns = regarding->meta.ns,
        .regarding_name = regarding->meta.name,
        .regarding_uid = regarding->meta.uid,
        .time_ms = s->first_wall_ms,
    };
    struct event_write *w = event_write_new(r, object, s, e.ns, name);
    w->warning = warning;
    w->body = xstrdup(event_encode(&e, &a));
    arena_done(&a);
    enqueue(r, s, w);
}

static char *object_key(const struct object *o)
{
    return xasprintf("%d/%s", o->kind, o->meta.uid ? o->meta.uid : "");
}

static void record(struct recorder *r, const struct object *regarding, bool warning, const char *reason,
                   const char *note)
{
    _cleanup_(free_p) char *key = object_key(regarding);
    uint64_t hash = series_key(warning, reason, note);
    int64_t now = clock_mono_ms(r->clock), wall = clock_wall_ms(r->clock);
    struct event_object *object = event_history_get(&r->history, key, now);
    struct series *s = event_object_series(object, hash);
    if (s && now - s->last_ms <= SERIES_GAP_MS) {
        char name[NAME_MAX_LEN + 1];
        s->count++;
        s->last_ms = now;
        s->last_wall_ms = wall;
        patch_series(r, object, s, event_ns(regarding), event_name(regarding, s->id, name, sizeof name));
        return;
    }
    if (!event_object_take_token(object, now)) {
        metric_add(r->dropped, 1);
        return;
    }
    if (!s)
        s = event_object_new_series(object);
    *s = (struct series){
        .key = hash, .id = rand_u64(&r->rand), .count = 1, .first_wall_ms = wall, .last_wall_ms = wall, .last_ms = now};
    create_event(r, object, s, regarding, warning, reason, note);
}

void recorder_event(struct recorder *r, const struct object *regarding, bool warning, const char *reason,
                    const char *note)
{
    _cleanup_(free_p) char *clean = clean_note(note);
    record(r, regarding, warning, reason, clean);
}

void recorder_forget(struct recorder *r, const struct object *gone)
{
    _cleanup_(free_p) char *key = object_key(gone);
    struct event_object *s = event_history_find(&r->history, key);
    if (!s)
        return;
    LIST_FOREACH(l, &r->queued) {
        struct event_write *w = CONTAINER_OF(l, struct event_write, link);
        if (w->warning || !str_eq(w->object, key))
            continue;
        list_remove(&w->link);
        r->n_queued--;
        metric_add(r->dropped, 1);
        event_write_free(w);
    }
    event_history_forget(&r->history, s);
}

struct recorder *recorder_new(struct loop *loop, struct kube_client *client, const char *controller,
                              const char *instance, struct metrics *metrics)
{
    struct recorder *r = xcalloc(1, sizeof *r);
    r->client = client;
    r->clock = loop_clock(loop);
    r->pump = loop_timer_new(loop, send_next, r);
    r->controller = controller;
    r->instance = instance;
    rand_seed_system(&r->rand); // names must differ from the names of an earlier process
    event_history_init(&r->history);
    list_init(&r->queued);
    list_init(&r->sent);
    if (metrics) {
        static const char help[] = "Number of writes of Events, by result.";
        r->written = metrics_counter(metrics, "cadre_event_writes_total", help, "result=\"written\"");
        r->failed = metrics_counter(metrics, "cadre_event_writes_total", help, "result=\"failed\"");
        r->dropped = metrics_counter(metrics, "cadre_event_writes_total", help, "result=\"dropped\"");
    }
    return r;
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    LIST_FOREACH(l, &r->queued)
        event_write_free(CONTAINER_OF(l, struct event_write, link));
    LIST_FOREACH(l, &r->sent) {
        struct event_write *w = CONTAINER_OF(l, struct event_write, link);
        inquiry_drop(w->inquiry);
        event_write_free(w);
    }
    event_history_done(&r->history);
    loop_timer_free(r->pump);
    free(r);
}
