// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/output.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 256 * 1024, RANGES_MAX = 96 };

struct folded_line {
    struct list link;
    uint64_t seq;
    int64_t due_ms;
    uint32_t n_ranks;
    uint64_t *ranks; // a bit for each rank
    size_t len;
    char *text;
};

struct group_output { // of a group, while it has listeners
    struct list link; // in the router's list
    struct group *group;
    struct list listeners;
    uint32_t n_listeners;
    struct list lines;
    uint32_t n_lines, world;
    uint64_t seq;
    uint64_t *last; // the seq of each rank's latest line
    uint64_t dropped;
};

struct output_listener {
    struct list of_output, of_session;
    struct group_output *output;
    struct session *session;
    uint64_t dropped;
};

static void line_free(struct folded_line *l)
{
    list_remove(&l->link);
    free(l->ranks);
    free(l->text);
    free(l);
}

static void changed(struct router *r, struct group *g)
{
    if (list_empty(&g->heard))
        list_append(&r->heard, &g->heard);
}

static struct group_output *output_new(struct router *r, struct group *g)
{
    struct group_output *o = xcalloc(1, sizeof *o);
    o->group = g;
    o->world = g->world;
    o->last = xcalloc((size_t)g->world + 1, sizeof *o->last);
    list_init(&o->listeners);
    list_init(&o->lines);
    list_append(&r->outputs, &o->link);
    g->output = o;
    changed(r, g);
    return o;
}

static void output_free(struct group_output *o)
{
    LIST_FOREACH(l, &o->lines)
        line_free(CONTAINER_OF(l, struct folded_line, link));
    o->group->output = NULL;
    list_remove(&o->link);
    free(o->last);
    free(o);
}

static void listener_free(struct output_listener *l)
{
    list_remove(&l->of_output);
    list_remove(&l->of_session);
    l->output->n_listeners--;
    free(l);
}

static struct output_listener *find(const struct session *s, const struct group *g)
{
    LIST_FOREACH(l, &s->listening) {
        struct output_listener *listener = CONTAINER_OF(l, struct output_listener, of_session);
        if (listener->output->group == g)
            return listener;
    }
    return NULL;
}

int output_listen(struct session *s, const struct group *named, struct err *err)
{
    struct group *g = router_group_of(s->router, named);
    if (find(s, g))
        return 0;
    struct group_output *o = g->output ? g->output : output_new(s->router, g);
    if (o->n_listeners == OUTPUT_LISTENERS_MAX)
        return err_set(err, ERR_LIMIT, "%d clients listen to the output of %s, which is the limit",
                       OUTPUT_LISTENERS_MAX, g->key);
    struct output_listener *l = xcalloc(1, sizeof *l);
    l->output = o;
    l->session = s;
    o->n_listeners++;
    list_append(&o->listeners, &l->of_output);
    list_append(&s->listening, &l->of_session);
    return 0;
}

static void end(struct output_listener *l)
{
    struct group_output *o = l->output;
    struct router *r = l->session->router;
    listener_free(l);
    if (o->n_listeners)
        return;
    changed(r, o->group);
    output_free(o);
}

void output_unlisten(struct session *s, const struct group *named)
{
    struct output_listener *l = find(s, router_group_of(s->router, named));
    if (l)
        end(l);
}

void output_session_ends(struct session *s)
{
    LIST_FOREACH(l, &s->listening)
        end(CONTAINER_OF(l, struct output_listener, of_session));
}

// Sending

// Writes "0-3,7"; if the ranks are very scattered, only the first of them.
static void put_ranks(struct json_writer *w, const struct folded_line *l, uint32_t world)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(RANGES_MAX + 32);
    for (uint32_t i = 0; i < world; i++) {
        if (!(l->ranks[i / 64] >> i % 64 & 1))
            continue;
        uint32_t from = i;
        while (i + 1 < world && (l->ranks[(i + 1) / 64] >> (i + 1) % 64 & 1))
            i++;
        if (text.len > RANGES_MAX) {
            buf_puts(&text, ",...");
            break;
        }
        buf_printf(&text, i > from ? "%s%" PRIu32 "-%" PRIu32 : "%s%" PRIu32, text.len ? "," : "", from, i);
    }
    writer_str(w, "ranks", buf_str(&text));
}

static void begin_body(struct json_writer *w, const struct group_output *o)
{
    writer_object(w, NULL);
    writer_str(w, "group", o->group->key);
    writer_list(w, "lines");
}

static void end_body(struct json_writer *w, uint64_t dropped)
{
    writer_list_end(w);
    if (dropped)
        writer_i64(w, "dropped", (int64_t)dropped);
    writer_object_end(w);
}

static void send_to(struct output_listener *l, const struct json_writer *w)
{
    const struct record_header h = {.type = RECORD_OUTPUT, .rank = RECORD_GROUP};
    session_copy(l->session, &h, buf_str(&w->buf), w->buf.len);
}

static void catch_up(struct output_listener *l)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    if (!l->dropped)
        return;
    begin_body(&w, l->output);
    end_body(&w, l->dropped);
    l->dropped = 0;
    send_to(l, &w);
}

static void send_all(struct group_output *o, const struct json_writer *w, uint32_t n)
{
    LIST_FOREACH(i, &o->listeners) {
        struct output_listener *l = CONTAINER_OF(i, struct output_listener, of_output);
        const struct peer *p = &l->session->peer;
        if (!p->out || p->out->queue.bytes > l->session->router->config.high_mark) {
            l->dropped += n + o->dropped;
            continue;
        }
        catch_up(l);
        send_to(l, w);
    }
    o->dropped = 0;
}

static bool is_ripe(const struct group_output *o, int64_t now_ms)
{
    const struct folded_line *first = CONTAINER_OF(o->lines.next, struct folded_line, link);
    return !list_empty(&o->lines) && (first->due_ms <= now_ms || first->n_ranks == o->world);
}

// Sends the first lines to which no more ranks can be added.
static void flush(struct group_output *o, int64_t now_ms)
{
    while (is_ripe(o, now_ms) || (o->dropped && list_empty(&o->lines))) {
        _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
        uint32_t n = 0;
        begin_body(&w, o);
        while (is_ripe(o, now_ms) && w.buf.len < BODY_MAX) {
            struct folded_line *l = CONTAINER_OF(o->lines.next, struct folded_line, link);
            writer_object(&w, NULL);
            put_ranks(&w, l, o->world);
            writer_str(&w, "text", l->text);
            writer_object_end(&w);
            line_free(l);
            o->n_lines--;
            n++;
        }
        end_body(&w, o->dropped);
        send_all(o, &w, n);
    }
}

// Receiving

static struct folded_line *fold(const struct group_output *o, uint32_t rank, const char *text, size_t len)
{
    for (struct list *i = o->lines.prev; i != &o->lines; i = i->prev) {
        struct folded_line *l = CONTAINER_OF(i, struct folded_line, link);
        if (l->seq <= o->last[rank]) // an earlier line would change the order of this rank's lines
            return NULL;
        if (l->len == len && memcmp(l->text, text, len) == 0)
            return l;
    }
    return NULL;
}

static struct folded_line *add(struct group_output *o, const char *text, size_t len, int64_t now_ms)
{
    if (o->n_lines == OUTPUT_LINES_MAX) {
        CONTAINER_OF(o->lines.next, struct folded_line, link)->due_ms = now_ms;
        flush(o, now_ms);
    }
    struct folded_line *l = xcalloc(1, sizeof *l);
    l->seq = ++o->seq;
    l->due_ms = now_ms + OUTPUT_FOLD_MS;
    l->ranks = xcalloc(((size_t)o->world + 63) / 64, sizeof *l->ranks);
    l->len = len;
    l->text = xmalloc(len + 1);
    memcpy(l->text, text, len);
    l->text[len] = '\0';
    list_append(&o->lines, &l->link);
    o->n_lines++;
    return l;
}

// The number of ranks has changed, so none of the earlier ranks exists any more.
static void fit(struct group_output *o)
{
    if (o->world == o->group->world)
        return;
    flush(o, INT64_MAX);
    o->world = o->group->world;
    free(o->last);
    o->last = xcalloc((size_t)o->world + 1, sizeof *o->last);
}

void output_line(struct router *r, const char *group_uid, uint32_t rank, const char *text, size_t len)
{
    const struct group *g = router_group(r, group_uid);
    struct group_output *o = g ? g->output : NULL;
    int64_t now_ms = clock_mono_ms(r->config.clock);
    if (!o)
        return;
    fit(o);
    if (rank >= o->world)
        return;
    len = strnlen(text, MIN(len, (size_t)OUTPUT_LINE_MAX)); // nobody could see what follows a NUL byte
    struct folded_line *l = fold(o, rank, text, len);
    if (!l)
        l = add(o, text, len, now_ms);
    l->ranks[rank / 64] |= (uint64_t)1 << rank % 64;
    l->n_ranks++;
    o->last[rank] = l->seq;
    flush(o, now_ms);
}

void output_dropped(struct router *r, const char *group_uid, uint64_t n)
{
    const struct group *g = router_group(r, group_uid);
    if (!g || !g->output || !n)
        return;
    g->output->dropped += n;
    flush(g->output, clock_mono_ms(r->config.clock));
}

void output_group_ends(struct group *g)
{
    list_remove(&g->heard);
    if (!g->output)
        return;
    flush(g->output, INT64_MAX);
    LIST_FOREACH(l, &g->output->listeners)
        listener_free(CONTAINER_OF(l, struct output_listener, of_output));
    output_free(g->output);
}

const struct group *output_changed(struct router *r)
{
    struct list *l = list_pop(&r->heard);
    return l ? CONTAINER_OF(l, struct group, heard) : NULL;
}

int64_t output_due_ms(const struct router *r)
{
    int64_t due = INT64_MAX;
    LIST_FOREACH(i, &r->outputs) {
        const struct group_output *o = CONTAINER_OF(i, struct group_output, link);
        if (!list_empty(&o->lines))
            due = MIN(due, CONTAINER_OF(o->lines.next, struct folded_line, link)->due_ms);
    }
    return due;
}

void output_tick(struct router *r, int64_t now_ms)
{
    LIST_FOREACH(i, &r->outputs)
        flush(CONTAINER_OF(i, struct group_output, link), now_ms);
}
