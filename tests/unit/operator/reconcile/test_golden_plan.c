// SPDX-License-Identifier: Apache-2.0
// tests/golden/plan/<case>/{in.json,want.txt}: a WorkerGroup in its world (group_case.h), and the decision about it.
// The plan is written as in plan_describe(). A status is written as its changes to the present status. The cases
// render-* also contain the bodies: a pod is written as its difference to the template, or to the pod before
// (json_change.h).
#include "tests/unit/operator/reconcile/json_change.h"
#include "tests/unit/support/golden.h"
#include "tests/unit/support/group_case.h"
#include "tests/unit/support/likeness.h"

#include "common/base/arena.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct json *parse(struct group_case *c, const char *text)
{
    struct json *v;
    struct err err = ERR_INIT;
    if (json_parse(text, strlen(text), NULL, &c->arena, &v, &err) < 0) {
        fprintf(stderr, "%s in: %s\n", err.msg, text);
        abort();
    }
    return v;
}

// A first status is compared with this, so that the result shows more than the fields that all statuses have.
static const struct json *new_object(struct group_case *c)
{
    return parse(
        c, likeness_expand(c->view.wg ? "{\"like\":\"group-new\"}" : "{\"like\":\"placement-group-new\"}", &c->arena));
}

static void put_status(struct buf *b, struct group_case *c, const struct action *x)
{
    bool first = !json_get(c->given, "status");
    const struct json *patch = parse(c, x->body), *version = json_get(json_get(patch, "metadata"), "resourceVersion");
    buf_printf(b, "%d %s", x->stage, first ? "first status" : "status");
    if (!version || !str_eq(json_str(version, &c->arena), c->owner->meta.resource_version))
        buf_printf(b, " of version %.*s", version ? (int)version->len : 3, version ? version->text : "any");
    buf_putc(b, '\n');
    json_change_print(b, "", json_get(first ? new_object(c) : c->given, "status"), json_get(patch, "status"),
                      JSON_CHANGE_PATCH);
    JSON_FOREACH(m, patch)
        if (!json_key_is(m, "status") && !(json_key_is(m, "metadata") && json_count(m) == 1 && version))
            buf_printf(b, "    and %.*s\n", (int)m->len, m->text);
}

static const struct action *next_status(const struct plan *p, size_t *at)
{
    while (p->actions[*at].kind != ACTION_STATUS)
        (*at)++;
    return &p->actions[(*at)++];
}

static void put_actions(struct buf *b, struct group_case *c, const struct plan *p)
{
    const char *text = plan_describe(p, &c->arena);
    size_t statuses = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        if (str_starts(text + 1, " status {"))
            put_status(b, c, next_status(p, &statuses));
        else
            buf_append(b, text, (size_t)(end - text) + 1);
    }
}

static void put_bodies(struct buf *b, struct group_case *c, const struct plan *p)
{
    const struct json *before = json_get(json_get(c->given, "spec"), "template");
    for (size_t i = 0; i < p->n; i++) {
        const struct action *x = &p->actions[i];
        bool pod = x->kind == ACTION_CREATE_POD || x->kind == ACTION_DRY_RUN;
        if (!x->body || x->kind == ACTION_STATUS)
            continue;
        const struct json *body = parse(c, x->body);
        buf_printf(b, "%s:\n", x->name ? x->name : "dry run");
        json_change_print(b, "", pod ? before : NULL, body, JSON_CHANGE_WHOLE);
        if (pod)
            before = body;
    }
}

static char *decide(const char *name, const char *in, size_t len)
{
    (void)len;
    struct group_case *c = group_case_new(in);
    const struct plan *p = group_case_decide(c);
    struct buf b = BUF_INIT(1024 * 1024);
    put_actions(&b, c, p);
    if (!b.len)
        buf_puts(&b, "nothing\n");
    if (str_starts(name, "render-"))
        put_bodies(&b, c, p);
    group_case_free(c);
    return buf_take(&b);
}

int main(void)
{
    return golden_run("tests/golden/plan", "in.json", "want.txt", decide) == 0 ? 0 : 1;
}
