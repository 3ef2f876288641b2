// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/archives.h"

#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

void archive_source_begin(struct archive_source *a, struct connection *c, const char *ns)
{
    *a = (struct archive_source){.connection = c, .ns = xstrdup(ns)};
    list_append(&c->gateway->archive_sources, &a->link);
}

void archive_source_end(struct archive_source *a)
{
    list_remove(&a->link);
    free(a->ns);
    free(a->have);
}

static int take(struct archive_source *a, const struct json *list, struct arena *arena, struct err *err)
{
    if (list->type != JSON_LIST)
        return err_set(err, ERR_INVALID, "\"archives\" of an agent is a list");
    a->n = 0;
    JSON_FOREACH(v, list) {
        const char *sha256 = json_str(v, arena);
        if (a->n == ARCHIVES_MAX)
            break;
        if (!archive_sha256(sha256))
            return err_set(err, ERR_INVALID, "\"archives\" of an agent is a list of SHA-256");
        a->have = xrealloc(a->have, a->n + 1, sizeof *a->have);
        memcpy(a->have[a->n++], sha256, sizeof *a->have);
    }
    return 0;
}

int archive_source_learn(struct archive_source *a, const char *body, size_t len, struct err *err)
{
    static const char *const prune[] = {"groups", "gpus", NULL};
    _cleanup_(arena_done) struct arena arena = ARENA_INIT;
    struct json *root = NULL;
    if (len <= strlen("{}")) // most heartbeats are empty
        return 0;
    int r = json_parse(body, len, prune, &arena, &root, err);
    const struct json *list = r == 0 ? json_get(root, "archives") : NULL;
    return list ? take(a, list, &arena, err) : r;
}

static bool has(const struct archive_source *a, const char *ns, const char *sha256)
{
    bool found = false;
    for (size_t i = 0; i < a->n && !found; i++)
        found = str_eq(a->have[i], sha256);
    return found && str_eq(a->ns, ns);
}

// Spreads pieces, and ranks that ask at the same time, over all agents that have the archive.
static const struct archive_source *choose(const struct gateway *g, const char *ns, const struct archive_piece *p)
{
    const struct archive_source *chosen = NULL;
    size_t n = 0, nth = 0;
    LIST_FOREACH(l, &g->archive_sources)
        n += has(CONTAINER_OF(l, struct archive_source, link), ns, p->sha256);
    size_t wanted = n ? (size_t)((uint64_t)p->offset / ARCHIVE_PIECE_MAX + p->rank) % n : 0;
    LIST_FOREACH(l, &g->archive_sources) {
        const struct archive_source *a = CONTAINER_OF(l, struct archive_source, link);
        if (!chosen && has(a, ns, p->sha256) && nth++ == wanted)
            chosen = a;
    }
    return chosen;
}

bool archives_ask(struct gateway *g, const char *ns, const struct archive_piece *p)
{
    const struct archive_source *a = choose(g, ns, p);
    _cleanup_(buf_done) struct buf body = BUF_INIT(2 * ARCHIVE_HEAD_MAX);
    struct err ignored = ERR_INIT; // an agent whose queue is full is about to end
    if (!a)
        return false;
    archive_piece_write(p, &body);
    (void)connection_send(a->connection, RECORD_ARCHIVE, buf_str(&body), body.len, &ignored);
    return true;
}
