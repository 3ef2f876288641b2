// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent_listen.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct listen_group {
    struct list link;
    char *uid;
    struct json_writer lines; // items of a list, without its brackets
    int64_t dropped;
};

void listen_init(struct listen *l)
{
    list_init(&l->groups);
    l->n_groups = 0;
}

static void clear(struct listen_group *g)
{
    writer_done(&g->lines);
    g->lines = WRITER_INIT;
    g->dropped = 0;
}

static void forget(struct listen *l, struct listen_group *g)
{
    list_remove(&g->link);
    l->n_groups--;
    writer_done(&g->lines);
    free(g->uid);
    free(g);
}

void listen_done(struct listen *l)
{
    LIST_FOREACH(i, &l->groups)
        forget(l, CONTAINER_OF(i, struct listen_group, link));
}

static struct listen_group *find(const struct listen *l, const char *uid)
{
    LIST_FOREACH(i, &l->groups) {
        struct listen_group *g = CONTAINER_OF(i, struct listen_group, link);
        if (str_eq(g->uid, uid))
            return g;
    }
    return NULL;
}

void listen_command(struct listen *l, const char *body, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const struct json *root = json_read(body, len, &a);
    const char *uid = json_str(json_get(root, "group"), &a);
    struct listen_group *g = uid ? find(l, uid) : NULL;
    bool listens = json_is_true(json_get(root, "listen"));
    if (g && !listens) {
        forget(l, g);
    } else if (uid && !g && listens && l->n_groups < LISTEN_GROUPS_MAX) {
        g = xcalloc(1, sizeof *g);
        g->uid = xstrdup(uid);
        g->lines = WRITER_INIT;
        list_append(&l->groups, &g->link);
        l->n_groups++;
    }
}

bool listen_line(struct listen *l, const char *group, int rank, const char *text, size_t len)
{
    struct listen_group *g = find(l, group);
    if (!g)
        return false;
    bool waited = g->lines.buf.len || g->dropped;
    if (g->lines.buf.len > LISTEN_BATCH_MAX) {
        g->dropped++;
        return !waited;
    }
    char line[LISTEN_LINE_MAX + 1];
    len = MIN(len, (size_t)LISTEN_LINE_MAX);
    memcpy(line, text, len);
    line[len] = '\0';
    writer_print(&g->lines, NULL, "[%" PRId64 ",%s]", (int64_t)rank, line);
    return !waited;
}

bool listen_next(struct listen *l, struct json_writer *w)
{
    LIST_FOREACH(i, &l->groups) {
        struct listen_group *g = CONTAINER_OF(i, struct listen_group, link);
        if (!g->lines.buf.len && !g->dropped)
            continue;
        _cleanup_(free_p) char *list = xasprintf("[%s]", buf_str(&g->lines.buf));
        *w = WRITER_INIT;
        writer_object(w, NULL);
        writer_str(w, "group", g->uid);
        writer_raw(w, "lines", list, strlen(list));
        if (g->dropped)
            writer_i64(w, "dropped", g->dropped);
        writer_object_end(w);
        clear(g);
        return true;
    }
    return false;
}
