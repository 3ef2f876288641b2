// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/plan.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/wire/record.h"

#include <string.h>

enum { NOTE_MAX = 1000 };

void plan_init(struct plan *p, struct arena *a)
{
    *p = (struct plan){.requeue_ms = -1, .arena = a};
}

struct action *plan_add(struct plan *p, enum action_kind kind, int stage)
{
    if (p->n == p->size) {
        size_t size = p->size ? p->size * 2 : 16;
        struct action *bigger = arena_array(p->arena, size, sizeof *bigger);
        if (p->n)
            memcpy(bigger, p->actions, p->n * sizeof *bigger);
        p->actions = bigger;
        p->size = size;
    }
    size_t at = p->n++;
    for (; at > 0 && p->actions[at - 1].stage > stage; at--)
        p->actions[at] = p->actions[at - 1];
    p->actions[at] = (struct action){.kind = kind, .stage = stage, .grace_s = -1};
    return &p->actions[at];
}

void plan_requeue(struct plan *p, int64_t ms)
{
    if (ms < 0)
        ms = 0;
    if (p->requeue_ms < 0 || ms < p->requeue_ms)
        p->requeue_ms = ms;
}

void plan_avoid(struct plan *p, const char *node)
{
    size_t n = p->n_contended;
    if ((n & (n - 1)) == 0) { // the array is full when n is 0, 1, 2, 4, ...
        const char **bigger = arena_array(p->arena, n ? n * 2 : 1, sizeof *bigger);
        if (n)
            memcpy(bigger, p->contended, n * sizeof *bigger);
        p->contended = bigger;
    }
    p->contended[p->n_contended++] = arena_strdup(p->arena, node);
}

void plan_delete_pod(struct plan *p, const struct pod *pod, bool lost, int stage)
{
    const struct meta *m = &pod->obj.meta;
    bool forced = m->deleted_ms && m->deletion_grace_s == 0;
    if (m->deleted_ms && (!lost || forced))
        return;
    struct action *x = plan_add(p, ACTION_DELETE_POD, stage);
    x->name = arena_strdup(p->arena, m->name); // the pod may go while an earlier stage is carried out
    x->uid = arena_strdup(p->arena, m->uid);
    x->grace_s = lost ? 0 : -1;
}

void plan_add_event(struct plan *p, int stage, bool warning, const char *reason, const char *note)
{
    struct action *x = plan_add(p, ACTION_EVENT, stage);
    x->warning = warning;
    x->reason = reason;
    x->note = arena_strdup(p->arena, arena_clip(p->arena, note, NOTE_MAX));
}

void plan_add_status(struct plan *p, int stage, const char *patch, const char *resource_version)
{
    struct action *x = plan_add(p, ACTION_STATUS, stage);
    x->body = resource_version
                  ? arena_printf(p->arena, "{\"metadata\":{\"resourceVersion\":\"%s\"},%s", resource_version, patch + 1)
                  : patch;
}

bool plan_defers_status(struct plan *p, int64_t wanted_ms, int64_t settle_ms, int64_t now_ms)
{
    int64_t left = wanted_ms ? MIN(wanted_ms + settle_ms - now_ms, settle_ms) : settle_ms;
    if (left <= 0)
        return false;
    p->defers_status = true;
    plan_requeue(p, left);
    return true;
}

// Somebody who has a ticket can pretend to be that rank, so no ticket may get into a log.
static void put_body(struct buf *b, const char *body)
{
    static const char ticket[] = "\"ticket\":\"";
    for (const char *at; (at = strstr(body, ticket)); body = at + strcspn(at, "\"")) {
        at += strlen(ticket);
        buf_printf(b, "%.*s...", (int)(at - body), body);
    }
    buf_puts(b, body);
}

static void describe_action(struct buf *b, const struct action *x)
{
    buf_printf(b, "%d ", x->stage);
    switch (x->kind) {
    case ACTION_DRY_RUN:
        buf_printf(b, "dry-run pod%s%s\n", x->further ? " " : "", x->further ? x->name : "");
        break;
    case ACTION_CREATE_SERVICE:
        buf_printf(b, "create service %s\n", x->name);
        break;
    case ACTION_CREATE_SLICE:
        buf_printf(b, "create endpointslice %s\n", x->name);
        break;
    case ACTION_PATCH_SLICE:
        buf_printf(b, "patch endpointslice %s\n", x->name);
        break;
    case ACTION_CREATE_POD:
        buf_printf(b, "create pod %s on %s\n", x->name, x->node);
        break;
    case ACTION_DELETE_POD:
        buf_printf(b, "delete pod %s%s\n", x->name, x->grace_s == 0 ? " by force" : "");
        break;
    case ACTION_DELETE_OWNER:
        buf_printf(b, "delete the object\n");
        break;
    case ACTION_COMMAND:
        buf_printf(b, "tell %s: %s ", x->name, record_type_name(x->command));
        put_body(b, x->body);
        buf_putc(b, '\n');
        break;
    case ACTION_STATUS:
        buf_printf(b, "status %s\n", x->body);
        break;
    case ACTION_EVENT:
        buf_printf(b, "event %s %s: %s\n", x->warning ? "Warning" : "Normal", x->reason, x->note);
        break;
    }
}

const char *plan_describe(const struct plan *p, struct arena *a)
{
    struct buf b = BUF_INIT(256 * 1024);
    for (size_t i = 0; i < p->n; i++)
        describe_action(&b, &p->actions[i]);
    if (p->requeue_ms >= 0)
        buf_printf(&b, "again in %lld ms\n", (long long)p->requeue_ms);
    if (p->waits_for_room)
        buf_puts(&b, "again when there is more room\n");
    if (p->defers_status)
        buf_puts(&b, "a status waits for what comes next\n");
    if (p->gives_back)
        buf_puts(&b, "the gang is given back\n");
    for (size_t i = 0; i < p->n_contended; i++)
        buf_printf(&b, "node %s is avoided next time\n", p->contended[i]);
    const char *text = arena_strndup(a, buf_str(&b), b.len);
    buf_done(&b);
    return text;
}
