// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include "cli/advice.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 12, PODS_MAX = 40 };

struct story {
    const struct explain_input *in;
    const struct json *status;
    struct arena arena;
    struct buf *out;
};

static const char *text_of(struct story *s, const struct json *v, const char *name)
{
    const char *text = json_str(json_get(v, name), &s->arena);
    return text ? text : "";
}

static int64_t number_of(const struct json *v, const char *name, int64_t otherwise)
{
    int64_t n;
    return json_i64(json_get(v, name), &n) ? n : otherwise;
}

static const struct json *under(const struct json *v, const char *a, const char *b)
{
    return json_get(json_get(v, a), b);
}

// "5m" since that time, as kubectl writes ages.
static const char *age_of(struct story *s, const struct json *v, const char *name)
{
    int64_t at;
    const char *text = text_of(s, v, name);
    if (!rfc3339_parse(text, strlen(text), &at))
        return "?";
    int64_t sec = MAX((s->in->now_ms - at) / 1000, (int64_t)0);
    if (sec < 120)
        return arena_printf(&s->arena, "%" PRId64 "s", sec);
    if (sec < 2 * 3600)
        return arena_printf(&s->arena, "%" PRId64 "m", sec / 60);
    if (sec < 2 * 24 * 3600)
        return arena_printf(&s->arena, "%" PRId64 "h", sec / 3600);
    return arena_printf(&s->arena, "%" PRId64 "d", sec / (24 * 3600));
}

// Each line behind an indent.
static void put_indented(struct buf *out, const char *indent, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        buf_printf(out, "%s%.*s\n", indent, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

static const struct json *condition_of(const struct story *s, const char *type)
{
    JSON_FOREACH(c, json_get(s->status, "conditions"))
        if (json_str_is(json_get(c, "type"), type))
            return c;
    return NULL;
}

static bool is_placementgroup(const struct story *s)
{
    return json_str_is(json_get(s->in->group, "kind"), "PlacementGroup");
}

// The headline

static void put_headline(struct story *s)
{
    const char *kind = is_placementgroup(s) ? "PlacementGroup" : "WorkerGroup";
    const struct json *meta = json_get(s->in->group, "metadata"), *ready = condition_of(s, "Ready");
    const char *name = text_of(s, meta, "name"), *ns = text_of(s, meta, "namespace");
    if (!ready) {
        buf_printf(s->out,
                   "%s %s/%s: no operator has looked at it\n\n"
                   "It was created %s ago, and its status is empty. Is the operator there, and does it watch this\n"
                   "namespace? 'kubectl --namespace cadre-system get pods'\n",
                   kind, ns, name, age_of(s, meta, "creationTimestamp"));
        return;
    }
    const char *message = text_of(s, ready, "message");
    buf_printf(s->out, "%s %s/%s: %s", kind, ns, name, text_of(s, ready, "reason"));
    if (json_str_is(json_get(ready, "status"), "True"))
        buf_puts(s->out, ", ready");
    buf_printf(s->out, " for %s\n", age_of(s, ready, "lastTransitionTime"));
    put_indented(s->out, "  ", message);
    if (number_of(meta, "generation", 0) > number_of(s->status, "observedGeneration", 0))
        buf_puts(s->out, "  The spec was changed since; the operator has not looked at the change yet.\n");
    if (json_get(meta, "deletionTimestamp"))
        buf_printf(s->out, "  It is being deleted, for %s.\n", age_of(s, meta, "deletionTimestamp"));
}

static void put_advice(struct story *s)
{
    static const char *const order[] = {"Failed", "Ready", "Accepted"};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const struct json *c = condition_of(s, order[i]);
        bool wanted = json_str_is(json_get(c, "status"), "True") == str_eq(order[i], "Failed");
        const char *advice = wanted ? advice_of(text_of(s, c, "reason")) : NULL;
        if (!advice)
            continue;
        buf_puts(s->out, "\nWhat to do\n");
        put_indented(s->out, "  ", advice);
        return;
    }
}

// Numbers and conditions

// The first PlacementGroup that a WorkerGroup is to run on; NULL: it has pods of its own.
static const char *pool_of(struct story *s)
{
    const struct json *groups = json_get(json_get(json_get(s->in->group, "spec"), "placement"), "groups");
    return json_count(groups) ? text_of(s, groups->child, "name") : NULL;
}

static void put_progress(struct story *s)
{
    const struct json *st = s->status, *spec = json_get(s->in->group, "spec");
    int64_t replicas = number_of(json_get(st, "revision"), "replicas", 0); // of what runs, whatever is asked for by now
    if (is_placementgroup(s)) {
        buf_printf(s->out, "\n%" PRId64 " of %" PRId64 " bundles have a node\n", number_of(st, "boundBundles", 0),
                   number_of(st, "bundles", 0));
        return;
    }
    buf_printf(s->out,
               "\nAttempt %" PRId64 ": %" PRId64 " of %" PRId64 " workers ready; of %" PRId64 " %s %" PRId64
               " have a node, %" PRId64 " are ready\n",
               number_of(st, "attempt", 0), number_of(st, "readyWorkers", 0), number_of(st, "worldSize", 0),
               replicas ? replicas : number_of(spec, "replicas", 1), pool_of(s) ? "bundles" : "pods",
               number_of(st, "scheduledReplicas", 0), number_of(st, "readyReplicas", 0));
    buf_printf(s->out, "Restarts: %" PRId64 ", of which %" PRId64 " count towards the %" PRId64 " that are allowed\n",
               number_of(st, "restarts", 0), number_of(st, "restartsCountTowardsMax", 0),
               number_of(spec, "maxRestarts", 3));
}

static void put_numbers(struct story *s)
{
    const struct json *placements = json_get(s->status, "placements");
    if (!condition_of(s, "Ready"))
        return;
    put_progress(s);
    if (!json_count(placements))
        return;
    buf_puts(s->out, "Placement:");
    JSON_FOREACH(p, placements)
        buf_printf(s->out, "%s %s (%s)", p == placements->child ? "" : ",", text_of(s, p, "node"),
                   text_of(s, p, is_placementgroup(s) ? "bundles" : "replicas"));
    buf_puts(s->out, "\n");
}

static void put_conditions(struct story *s)
{
    const char *shown = text_of(s, condition_of(s, "Ready"), "message");
    if (!json_count(json_get(s->status, "conditions")))
        return;
    buf_puts(s->out, "\nConditions\n");
    JSON_FOREACH(c, json_get(s->status, "conditions")) {
        const char *message = text_of(s, c, "message");
        buf_printf(s->out, "  %-10s %-8s %-20s for %s\n", text_of(s, c, "type"), text_of(s, c, "status"),
                   text_of(s, c, "reason"), age_of(s, c, "lastTransitionTime"));
        if (*message && !str_eq(message, shown))
            put_indented(s->out, "             ", message);
    }
}

static void put_failure(struct story *s)
{
    const struct json *f = json_get(s->status, "lastFailure");
    int64_t code = number_of(f, "exitCode", -1);
    if (!f)
        return;
    buf_printf(s->out, "\nLast failure, %s ago: rank %" PRId64, age_of(s, f, "time"), number_of(f, "rank", -1));
    if (*text_of(s, f, "pod"))
        buf_printf(s->out, ", pod %s", text_of(s, f, "pod"));
    if (*text_of(s, f, "node"))
        buf_printf(s->out, ", node %s", text_of(s, f, "node"));
    if (code >= 0)
        buf_printf(s->out, ", exit code %" PRId64, code);
    if (*text_of(s, f, "reason"))
        buf_printf(s->out, ", %s", text_of(s, f, "reason"));
    buf_puts(s->out, "\n");
    put_indented(s->out, "  | ", text_of(s, f, "message"));
}

// Pods

static int by_index(const void *pa, const void *pb)
{
    const struct json *const *a = pa, *const *b = pb;
    const struct json *la = under(*a, "metadata", "name"), *lb = under(*b, "metadata", "name");
    struct arena arena = ARENA_INIT;
    int r = str_cmp_natural(json_str(la, &arena), json_str(lb, &arena));
    arena_done(&arena);
    return r;
}

// What a container waits for, or how it ended; false where it just runs.
static bool put_container(struct story *s, const struct json *c)
{
    const struct json *waiting = under(c, "state", "waiting"), *ended = under(c, "state", "terminated");
    if (waiting) {
        buf_printf(s->out, "      %s waits: %s%s%s\n", text_of(s, c, "name"), text_of(s, waiting, "reason"),
                   *text_of(s, waiting, "message") ? ": " : "", text_of(s, waiting, "message"));
        return true;
    }
    int64_t code = number_of(ended, "exitCode", 0);
    if (!ended || code == 0)
        return false;
    buf_printf(s->out, "      %s ended with exit code %" PRId64 ", %s\n", text_of(s, c, "name"), code,
               text_of(s, ended, "reason"));
    return true;
}

static void put_pod(struct story *s, const struct json *pod)
{
    const struct json *st = json_get(pod, "status"), *meta = json_get(pod, "metadata");
    const char *node = json_str(under(pod, "spec", "nodeName"), &s->arena), *phase = text_of(s, st, "phase");
    buf_printf(s->out, "  %-28s %-16s %-10s for %s\n", text_of(s, meta, "name"), node ? node : "no node",
               json_get(meta, "deletionTimestamp") ? "Ending" : phase, age_of(s, meta, "creationTimestamp"));
    if (*text_of(s, st, "message"))
        buf_printf(s->out, "      %s: %s\n", text_of(s, st, "reason"), text_of(s, st, "message"));
    JSON_FOREACH(c, json_get(st, "conditions")) {
        if (json_str_is(json_get(c, "type"), "PodScheduled") && json_str_is(json_get(c, "status"), "False"))
            buf_printf(s->out, "      not bound: %s: %s\n", text_of(s, c, "reason"), text_of(s, c, "message"));
    }
    if (str_eq(phase, "Succeeded"))
        return;
    JSON_FOREACH(c, json_get(st, "initContainerStatuses"))
        put_container(s, c);
    JSON_FOREACH(c, json_get(st, "containerStatuses"))
        put_container(s, c);
}

static void put_pods(struct story *s)
{
    size_t n = json_count(json_get(s->in->pods, "items")), i = 0;
    if (!s->in->pods)
        return;
    if (n == 0 && pool_of(s)) {
        buf_printf(s->out, "\nPods: those of its PlacementGroups: kubectl get pods -l cadre.dev/group=%s-plg\n",
                   pool_of(s));
        return;
    }
    if (n == 0) {
        buf_puts(s->out, "\nPods: none\n");
        return;
    }
    const struct json **pods = arena_array(&s->arena, n, sizeof *pods);
    JSON_FOREACH(pod, json_get(s->in->pods, "items"))
        pods[i++] = pod;
    qsort(pods, n, sizeof *pods, by_index);
    buf_puts(s->out, "\nPods\n");
    for (i = 0; i < MIN(n, (size_t)PODS_MAX); i++)
        put_pod(s, pods[i]);
    if (n > PODS_MAX)
        buf_printf(s->out, "  ... and %zu more\n", n - PODS_MAX);
}

// Events

// Events of today have eventTime and a series, older ones lastTimestamp and count.
static const struct json *time_of(const struct json *e, const char **ret_name)
{
    static const char *const places[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
    *ret_name = "lastObservedTime";
    if (json_get(json_get(e, "series"), *ret_name))
        return json_get(e, "series");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        *ret_name = places[i];
        if (json_get(e, places[i]))
            return e;
    }
    *ret_name = "creationTimestamp";
    return json_get(e, "metadata");
}

static int by_time(const void *pa, const void *pb)
{
    int64_t at[2] = {0, 0};
    const struct json *const events[2] = {*(const struct json *const *)pa, *(const struct json *const *)pb};
    for (int i = 0; i < 2; i++) {
        struct arena arena = ARENA_INIT;
        const char *name;
        const struct json *where = time_of(events[i], &name);
        const char *text = json_str(json_get(where, name), &arena);
        if (text)
            rfc3339_parse(text, strlen(text), &at[i]);
        arena_done(&arena);
    }
    return (at[0] > at[1]) - (at[0] < at[1]);
}

static void put_event(struct story *s, const struct json *e)
{
    const char *name;
    const struct json *where = time_of(e, &name);
    int64_t count = number_of(json_get(e, "series"), "count", number_of(e, "count", 1));
    const char *message = text_of(s, e, "message");
    buf_printf(s->out, "  %5s ago  %-8s %-20s %.*s", age_of(s, where, name), text_of(s, e, "type"),
               text_of(s, e, "reason"), (int)strcspn(message, "\n"), message);
    if (count > 1)
        buf_printf(s->out, " (%" PRId64 " times)", count);
    buf_puts(s->out, "\n");
}

static void put_events(struct story *s)
{
    size_t n = json_count(json_get(s->in->events, "items")), i = 0;
    if (n == 0)
        return;
    const struct json **events = arena_array(&s->arena, n, sizeof *events);
    JSON_FOREACH(e, json_get(s->in->events, "items"))
        events[i++] = e;
    qsort(events, n, sizeof *events, by_time);
    buf_puts(s->out, "\nEvents\n");
    for (i = n > EVENTS_MAX ? n - EVENTS_MAX : 0; i < n; i++)
        put_event(s, events[i]);
}

void explain(const struct explain_input *in, struct buf *out)
{
    struct story s = {.in = in, .status = json_get(in->group, "status"), .arena = ARENA_INIT, .out = out};
    put_headline(&s);
    put_advice(&s);
    put_failure(&s);
    put_numbers(&s);
    put_conditions(&s);
    put_pods(&s);
    put_events(&s);
    arena_done(&s.arena);
}
