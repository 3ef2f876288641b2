// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/line.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"

#include <stdlib.h>
#include <string.h>

struct waiting {
    struct line_member member; // its strings are owned
    int64_t since_ms;
    int short_of;
    int passes;                           // gangs that have passed it since the last hold
    int doublings;                        // of the next hold
    int64_t hold_until_ms, rest_until_ms; // 0 = there was none yet
    char **nodes;
    size_t n_nodes;
};

struct line {
    struct waiting **items; // in order
    size_t n, size;
    struct map by_uid;
    int64_t seen_ms; // the time when the line was last told something
};

struct line *line_new(void)
{
    return xcalloc(1, sizeof(struct line));
}

static void drop_nodes(struct waiting *w)
{
    for (size_t i = 0; i < w->n_nodes; i++)
        free(w->nodes[i]);
    free(TAKE_PTR(w->nodes));
    w->n_nodes = 0;
}

static void waiting_free(struct waiting *w)
{
    drop_nodes(w);
    free((char *)w->member.uid);
    free((char *)w->member.ns);
    free((char *)w->member.name);
    free(w);
}

void line_free(struct line *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++)
        waiting_free(l->items[i]);
    map_done(&l->by_uid);
    free(l->items);
    free(l);
}

static int member_cmp(const struct line_member *a, const struct line_member *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return strcmp(a->uid, b->uid);
}

// The number of gangs ahead of it.
static size_t position(const struct line *l, const struct line_member *m)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (member_cmp(&l->items[mid]->member, m) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool holding(const struct waiting *w, int64_t now_ms)
{
    return w->n_nodes && now_ms < w->hold_until_ms;
}

static int64_t due_ms(const struct waiting *w)
{
    int64_t at = w->passes >= LINE_PASSES ? w->since_ms : w->since_ms + LINE_PATIENCE_MS;
    return MAX(at, w->rest_until_ms);
}

static void sooner(int64_t *at, int64_t ms)
{
    if (*at < 0 || ms < *at)
        *at = ms;
}

void line_ask(const struct line *l, const struct line_member *m, int64_t now_ms, struct arena *a,
              struct line_answer *ret)
{
    const struct waiting *self = map_get(&l->by_uid, m->uid);
    size_t ahead = position(l, m), holders = 0, room = 0;
    *ret = (struct line_answer){.look_again_ms = -1};
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i] == self || !holding(l->items[i], now_ms))
            continue;
        holders++;
        room += i < ahead ? l->items[i]->n_nodes : 0;
    }
    const char **held = arena_array(a, room, sizeof *held);
    for (size_t i = 0; i < ahead; i++) {
        const struct waiting *w = l->items[i];
        if (w == self || !holding(w, now_ms))
            continue;
        for (size_t k = 0; k < w->n_nodes; k++)
            held[ret->n_held++] = arena_strdup(a, w->nodes[k]);
        sooner(&ret->look_again_ms, w->hold_until_ms - now_ms);
    }
    ret->held = held;
    if (!self)
        return;
    ret->waits_since_ms = self->since_ms;
    ret->hold = (const char *const *)self->nodes;
    ret->n_hold = self->n_nodes;
    ret->holds = holding(self, now_ms) || (due_ms(self) <= now_ms && holders < LINE_HOLDERS);
    if (!ret->holds)
        ret->n_hold = 0;
    if (holding(self, now_ms))
        sooner(&ret->look_again_ms, self->hold_until_ms - now_ms);
    else if (due_ms(self) > now_ms)
        sooner(&ret->look_again_ms, due_ms(self) - now_ms);
}

// A new leader knows only how long the gang has been waiting. It makes the next hold as long as it would be by now.
static int doublings_after(int64_t waited_ms)
{
    int n = 0;
    while (n < LINE_DOUBLINGS && ((int64_t)LINE_HOLD_MS << (n + 1)) < waited_ms)
        n++;
    return n;
}

static struct waiting *join(struct line *l, const struct line_note *note, int64_t now_ms)
{
    const struct line_member *m = &note->member;
    struct waiting *w = xcalloc(1, sizeof *w);
    w->member = *m;
    w->member.uid = xstrdup(m->uid);
    w->member.ns = xstrdup(m->ns);
    w->member.name = xstrdup(m->name);
    w->since_ms = MIN(note->since_ms, now_ms);
    w->doublings = doublings_after(now_ms - w->since_ms);
    if (l->n == l->size) {
        l->size = l->size ? l->size * 2 : 16;
        l->items = xrealloc(l->items, l->size, sizeof *l->items);
    }
    size_t at = position(l, m);
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof *l->items);
    l->items[at] = w;
    l->n++;
    map_set(&l->by_uid, m->uid, w);
    return w;
}

bool line_leave(struct line *l, const char *uid)
{
    struct waiting *w = map_del(&l->by_uid, uid);
    if (!w)
        return false;
    bool held = w->n_nodes > 0;
    size_t at = position(l, &w->member);
    l->n--;
    memmove(l->items + at, l->items + at + 1, (l->n - at) * sizeof *l->items);
    waiting_free(w);
    return held;
}

static void hold(struct waiting *w, const struct line_note *note, int64_t now_ms)
{
    bool goes_on = holding(w, now_ms);
    char **nodes = xcalloc(MAX(note->n_hold, (size_t)1), sizeof *nodes);
    for (size_t i = 0; i < note->n_hold; i++) // these may be the nodes that it has already
        nodes[i] = xstrdup(note->hold[i]);
    drop_nodes(w);
    w->nodes = nodes;
    w->n_nodes = note->n_hold;
    if (goes_on || !note->n_hold)
        return;
    int64_t ms = (int64_t)LINE_HOLD_MS << w->doublings;
    w->hold_until_ms = now_ms + ms;
    w->rest_until_ms = now_ms + 2 * ms;
    w->passes = 0;
    w->doublings = MIN(w->doublings + 1, LINE_DOUBLINGS);
}

static void pass(struct line *l, const struct line_note *note)
{
    size_t ahead = position(l, &note->member);
    for (size_t i = 0; i < ahead; i++) {
        struct waiting *w = l->items[i];
        if (w->short_of < 0 || resources_get(note->requests, w->short_of) > 0)
            w->passes++;
    }
}

// If the clock was set back, the times move back too. Otherwise a hold of minutes would last for hours.
static void see(struct line *l, int64_t now_ms)
{
    int64_t back = l->seen_ms - now_ms;
    for (size_t i = 0; i < l->n && back > 0; i++) {
        struct waiting *w = l->items[i];
        w->since_ms -= back;
        w->hold_until_ms -= back;
        w->rest_until_ms -= back;
    }
    l->seen_ms = now_ms;
}

bool line_tell(struct line *l, const struct line_note *note, int64_t now_ms)
{
    see(l, now_ms);
    struct waiting *w = map_get(&l->by_uid, note->member.uid);
    if (note->outcome == LINE_TAKES) {
        bool held = line_leave(l, note->member.uid);
        pass(l, note);
        return held;
    }
    if (w && w->member.priority != note->member.priority) { // its template has changed
        int64_t since = w->since_ms;
        line_leave(l, note->member.uid);
        struct line_note again = *note;
        again.since_ms = since;
        w = join(l, &again, now_ms);
    }
    if (!w)
        w = join(l, note, now_ms);
    w->short_of = note->short_of;
    hold(w, note, now_ms);
    return false;
}

const char *line_ahead(const struct line *l, const struct line_member *m, int short_of, struct arena *a)
{
    enum { NAMED = 3 };
    size_t ahead = position(l, m), n = 0;
    const char *text = NULL;
    for (size_t i = 0; i < ahead; i++) {
        const struct waiting *w = l->items[i];
        char since[RFC3339_SIZE];
        if (short_of >= 0 && w->short_of >= 0 && w->short_of != short_of)
            continue;
        if (n++ >= NAMED)
            continue;
        rfc3339_format(w->since_ms, since);
        text = arena_printf(a, "%s%s%s %s/%s since %s", text ? text : "", text ? ", " : "",
                            kind_info(w->member.kind)->kind, w->member.ns, w->member.name, since);
    }
    return n > NAMED ? arena_printf(a, "%s; %zu more", text, n - NAMED) : text;
}

size_t line_length(const struct line *l)
{
    return l->n;
}

const struct line_member *line_at(const struct line *l, size_t i)
{
    return &l->items[i]->member;
}
