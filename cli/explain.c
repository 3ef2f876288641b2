// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include "cli/advice.h"
#include "common/base/arena.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 12, PODS_MAX = 40 };

struct explain {
    const struct explain_input *in;
    const cJSON *status;
    struct arena arena;
    struct buf *out;
};

static const char *text_of(const cJSON *v, const char *name)
{
    const char *text = document_str(v, name);
    return text ? text : "";
}

static int64_t number_of(const cJSON *v, const char *name, int64_t otherwise)
{
    document_integer(document_get(v, name), &otherwise);
    return otherwise;
}

static const cJSON *under(const cJSON *v, const char *a, const char *b)
{
    return document_get(document_get(v, a), b);
}

// "5m" since that time, as kubectl writes ages.
static const char *age_of(struct explain *s, const cJSON *v, const char *name)
{
    int64_t at;
    const char *text = text_of(v, name);
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

// Puts an indent before each line.
static void put_indented(struct buf *out, const char *indent, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        buf_printf(out, "%s%.*s\n", indent, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

static const cJSON *condition_of(const struct explain *s, const char *type)
{
    DOCUMENT_FOREACH(c, document_get(s->status, "conditions"))
    if (document_str_is(c, "type", type))
        return c;
    return NULL;
}

static bool is_placementgroup(const struct explain *s)
{
    return document_str_is(s->in->group, "kind", "PlacementGroup");
}

// The headline

static void put_headline(struct explain *s)
{
    const char *kind = is_placementgroup(s) ? "PlacementGroup" : "WorkerGroup";
    const cJSON *meta = document_get(s->in->group, "metadata"), *ready = condition_of(s, "Ready");
    const char *name = text_of(meta, "name"), *ns = text_of(meta, "namespace");
    if (!ready) {
        buf_printf(s->out,
                   "%s %s/%s: no operator has looked at it\n\n"
                   "It was created %s ago, and its status is empty. Check that the operator runs and watches this\n"
                   "namespace: 'kubectl --namespace cadre-system get pods'\n",
                   kind, ns, name, age_of(s, meta, "creationTimestamp"));
        return;
    }
    const char *message = text_of(ready, "message");
    buf_printf(s->out, "%s %s/%s: %s", kind, ns, name, text_of(ready, "reason"));
    if (document_str_is(ready, "status", "True"))
        buf_puts(s->out, ", ready");
    buf_printf(s->out, " for %s\n", age_of(s, ready, "lastTransitionTime"));
    put_indented(s->out, "  ", message);
    if (number_of(meta, "generation", 0) > number_of(s->status, "observedGeneration", 0))
        buf_puts(s->out, "  The spec has changed; the operator has not looked at the change yet.\n");
    if (document_get(meta, "deletionTimestamp"))
        buf_printf(s->out, "  It has been terminating for %s.\n", age_of(s, meta, "deletionTimestamp"));
}

static void put_advice(struct explain *s)
{
    static const char *const order[] = {"Failed", "Ready", "Accepted"};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const cJSON *c = condition_of(s, order[i]);
        bool wanted = document_str_is(c, "status", "True") == str_eq(order[i], "Failed");
        const char *advice = wanted ? advice_of(text_of(c, "reason")) : NULL;
        if (!advice)
            continue;
        buf_puts(s->out, "\nWhat to do\n");
        put_indented(s->out, "  ", advice);
        return;
    }
}

// Numbers and conditions

// The first PlacementGroup that a WorkerGroup uses; NULL: it has its own pods.
static const char *placementgroup_of(const struct explain *s)
{
    const cJSON *groups = document_get(document_get(document_get(s->in->group, "spec"), "placement"), "groups");
    return document_count(groups) ? text_of(groups->child, "name") : NULL;
}

static void put_progress(struct explain *s)
{
    const cJSON *st = s->status, *spec = document_get(s->in->group, "spec");
    int64_t replicas =
        number_of(document_get(st, "revision"), "replicas", 0); // of the pods that run, whatever the spec asks for now
    if (is_placementgroup(s)) {
        buf_printf(s->out, "\n%" PRId64 " of %" PRId64 " bundles have a node\n", number_of(st, "boundBundles", 0),
                   number_of(st, "bundles", 0));
        return;
    }
    buf_printf(s->out,
               "\nAttempt %" PRId64 ": %" PRId64 " of %" PRId64 " workers ready; of %" PRId64 " %s %" PRId64
               " have a node, %" PRId64 " are ready\n",
               number_of(st, "attempt", 0), number_of(st, "readyWorkers", 0), number_of(st, "worldSize", 0),
               replicas ? replicas : number_of(spec, "replicas", 1), placementgroup_of(s) ? "bundles" : "pods",
               number_of(st, "scheduledReplicas", 0), number_of(st, "readyReplicas", 0));
    buf_printf(s->out, "Restarts: %" PRId64 "; %" PRId64 " count towards maxRestarts (%" PRId64 ")\n",
               number_of(st, "restarts", 0), number_of(st, "restartsCountTowardsMax", 0),
               number_of(spec, "maxRestarts", 3));
}

static void put_numbers(struct explain *s)
{
    const cJSON *placements = document_get(s->status, "placements");
    if (!condition_of(s, "Ready"))
        return;
    put_progress(s);
    if (!document_count(placements))
        return;
    buf_puts(s->out, "Placement:");
    DOCUMENT_FOREACH(p, placements)
    buf_printf(s->out, "%s %s (%s)", p == placements->child ? "" : ",", text_of(p, "node"),
               text_of(p, is_placementgroup(s) ? "bundles" : "replicas"));
    buf_puts(s->out, "\n");
}

static void put_conditions(struct explain *s)
{
    const char *shown = text_of(condition_of(s, "Ready"), "message");
    if (!document_count(document_get(s->status, "conditions")))
        return;
    buf_puts(s->out, "\nConditions\n");
    DOCUMENT_FOREACH(c, document_get(s->status, "conditions"))
    {
        const char *message = text_of(c, "message");
        buf_printf(s->out, "  %-10s %-8s %-20s for %s\n", text_of(c, "type"), text_of(c, "status"),
                   text_of(c, "reason"), age_of(s, c, "lastTransitionTime"));
        if (*message && !str_eq(message, shown))
            put_indented(s->out, "             ", message);
    }
}

static void put_failure(struct explain *s)
{
    const cJSON *f = document_get(s->status, "lastFailure");
    int64_t code = number_of(f, "exitCode", -1);
    if (!f)
        return;
    buf_printf(s->out, "\nLast failure, %s ago: rank %" PRId64, age_of(s, f, "time"), number_of(f, "rank", -1));
    if (*text_of(f, "pod"))
        buf_printf(s->out, ", pod %s", text_of(f, "pod"));
    if (*text_of(f, "node"))
        buf_printf(s->out, ", node %s", text_of(f, "node"));
    if (code >= 0)
        buf_printf(s->out, ", exit code %" PRId64, code);
    if (*text_of(f, "reason"))
        buf_printf(s->out, ", %s", text_of(f, "reason"));
    buf_puts(s->out, "\n");
    put_indented(s->out, "  | ", text_of(f, "message"));
}

// Pods

static int by_index(const void *pa, const void *pb)
{
    const cJSON *const *a = pa, *const *b = pb;
    return str_cmp_natural(text_of(document_get(*a, "metadata"), "name"),
                           text_of(document_get(*b, "metadata"), "name"));
}

// The reason why a container waits, or how it ended. False if it just runs.
static bool put_container(const struct explain *s, const cJSON *c)
{
    const cJSON *waiting = under(c, "state", "waiting"), *ended = under(c, "state", "terminated");
    if (waiting) {
        buf_printf(s->out, "      %s waits: %s%s%s\n", text_of(c, "name"), text_of(waiting, "reason"),
                   *text_of(waiting, "message") ? ": " : "", text_of(waiting, "message"));
        return true;
    }
    int64_t code = number_of(ended, "exitCode", 0);
    if (!ended || code == 0)
        return false;
    buf_printf(s->out, "      %s ended with exit code %" PRId64 ", %s\n", text_of(c, "name"), code,
               text_of(ended, "reason"));
    return true;
}

static void put_pod(struct explain *s, const cJSON *pod)
{
    const cJSON *st = document_get(pod, "status"), *meta = document_get(pod, "metadata");
    const char *node = document_str(document_get(pod, "spec"), "nodeName"), *phase = text_of(st, "phase");
    buf_printf(s->out, "  %-28s %-16s %-10s for %s\n", text_of(meta, "name"), node ? node : "no node",
               document_get(meta, "deletionTimestamp") ? "Ending" : phase, age_of(s, meta, "creationTimestamp"));
    if (*text_of(st, "message"))
        buf_printf(s->out, "      %s: %s\n", text_of(st, "reason"), text_of(st, "message"));
    DOCUMENT_FOREACH(c, document_get(st, "conditions"))
    {
        if (document_str_is(c, "type", "PodScheduled") && document_str_is(c, "status", "False"))
            buf_printf(s->out, "      not bound: %s: %s\n", text_of(c, "reason"), text_of(c, "message"));
    }
    if (str_eq(phase, "Succeeded"))
        return;
    DOCUMENT_FOREACH(c, document_get(st, "initContainerStatuses"))
    put_container(s, c);
    DOCUMENT_FOREACH(c, document_get(st, "containerStatuses"))
    put_container(s, c);
}

static void put_pods(struct explain *s)
{
    size_t n = document_count(document_get(s->in->pods, "items")), i = 0;
    if (!s->in->pods)
        return;
    if (n == 0 && placementgroup_of(s)) {
        buf_printf(s->out, "\nPods of its PlacementGroups: kubectl get pods -l cadre.dev/group=%s-plg\n",
                   placementgroup_of(s));
        return;
    }
    if (n == 0) {
        buf_puts(s->out, "\nPods: none\n");
        return;
    }
    const cJSON **pods = arena_array(&s->arena, n, sizeof *pods);
    DOCUMENT_FOREACH(pod, document_get(s->in->pods, "items"))
    pods[i++] = pod;
    qsort(pods, n, sizeof *pods, by_index);
    buf_puts(s->out, "\nPods\n");
    for (i = 0; i < MIN(n, (size_t)PODS_MAX); i++)
        put_pod(s, pods[i]);
    if (n > PODS_MAX)
        buf_printf(s->out, "  ... and %zu more\n", n - PODS_MAX);
}

// Events

// New events have eventTime and a series, older ones lastTimestamp and count.
static const cJSON *time_of(const cJSON *e, const char **ret_name)
{
    static const char *const names[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
    *ret_name = "lastObservedTime";
    if (document_get(document_get(e, "series"), *ret_name))
        return document_get(e, "series");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        *ret_name = names[i];
        if (document_get(e, names[i]))
            return e;
    }
    *ret_name = "creationTimestamp";
    return document_get(e, "metadata");
}

static int by_time(const void *pa, const void *pb)
{
    int64_t at[2] = {0, 0};
    const cJSON *const events[2] = {*(const cJSON *const *)pa, *(const cJSON *const *)pb};
    for (int i = 0; i < 2; i++) {
        const char *name;
        const cJSON *where = time_of(events[i], &name);
        const char *text = text_of(where, name);
        rfc3339_parse(text, strlen(text), &at[i]);
    }
    return (at[0] > at[1]) - (at[0] < at[1]);
}

static void put_event(struct explain *s, const cJSON *e)
{
    const char *name;
    const cJSON *where = time_of(e, &name);
    int64_t count = number_of(document_get(e, "series"), "count", number_of(e, "count", 1));
    const char *message = text_of(e, "message");
    buf_printf(s->out, "  %5s ago  %-8s %-20s %.*s", age_of(s, where, name), text_of(e, "type"), text_of(e, "reason"),
               (int)strcspn(message, "\n"), message);
    if (count > 1)
        buf_printf(s->out, " (%" PRId64 " times)", count);
    buf_puts(s->out, "\n");
}

static void put_events(struct explain *s)
{
    size_t n = document_count(document_get(s->in->events, "items")), i = 0;
    if (n == 0)
        return;
    const cJSON **events = arena_array(&s->arena, n, sizeof *events);
    DOCUMENT_FOREACH(e, document_get(s->in->events, "items"))
    events[i++] = e;
    qsort(events, n, sizeof *events, by_time);
    buf_puts(s->out, "\nEvents\n");
    for (i = n > EVENTS_MAX ? n - EVENTS_MAX : 0; i < n; i++)
        put_event(s, events[i]);
}

void explain(const struct explain_input *in, struct buf *out)
{
    struct explain s = {.in = in, .status = document_get(in->group, "status"), .arena = ARENA_INIT, .out = out};
    put_headline(&s);
    put_advice(&s);
    put_failure(&s);
    put_numbers(&s);
    put_conditions(&s);
    put_pods(&s);
    put_events(&s);
    arena_done(&s.arena);
}
