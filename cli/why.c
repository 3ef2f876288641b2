// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"
#include "cli/kubectl.h"
#include "cli/local.h"
#include "cli/plain.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS_MAX = 64 << 20 };

// What kubectl prints for this; lives in the arena.
static int get(const struct kubectl_args *args, struct arena *a, struct json **ret, struct err *err)
{
    static const char *const prune[] = {"managedFields", "template", "env", "volumes", NULL};
    struct buf out = BUF_INIT(OBJECTS_MAX);
    if (kubectl_run(args, &out, err) == 0) {
        const char *text = arena_strndup(a, buf_str(&out), out.len);
        if (json_parse(text, out.len, prune, a, ret, err) < 0)
            err_wrap(err, "what kubectl printed");
    }
    buf_done(&out);
    return err->code;
}

struct subject {
    const char *resource, *kind, *name;
    const char *gang; // value of the label of its pods
};

// "NAME" of a WorkerGroup, or with its kind as kubectl writes it: "plg/NAME".
static int find_subject(const char *text, struct arena *a, struct subject *ret, struct err *err)
{
    static const char *const placement[] = {"plg", "placementgroup", "placementgroups", "placementgroup.cadre.dev",
                                            "placementgroups.cadre.dev"};
    static const char *const worker[] = {"wg", "workergroup", "workergroups", "workergroup.cadre.dev",
                                         "workergroups.cadre.dev"};
    const char *slash = strchr(text, '/');
    const char *prefix = slash ? arena_strndup(a, text, (size_t)(slash - text)) : worker[0];
    *ret = (struct subject){.name = slash ? slash + 1 : text};
    for (size_t i = 0; i < ARRAY_LEN(worker); i++) {
        if (str_eq(prefix, worker[i]))
            *ret = (struct subject){"workergroups.cadre.dev", "WorkerGroup", ret->name, ret->name};
        if (str_eq(prefix, placement[i]))
            *ret = (struct subject){"placementgroups.cadre.dev", "PlacementGroup", ret->name,
                                    arena_printf(a, "%s-plg", ret->name)};
    }
    if (ret->kind && *ret->name && !strchr(ret->name, '/'))
        return 0;
    return err_set(err, ERR_INVALID, "%.200s is no group: GROUP is a name, or plg/NAME for a PlacementGroup", text);
}

static int get_group(const struct options *o, const char *ns, const struct subject *subject, struct arena *a,
                     struct json **ret, struct err *err)
{
    const struct kubectl_args args =
        kubectl_args(o, "get", subject->resource, subject->name, "--namespace", ns, "--output", "json", NULL);
    return get(&args, a, ret, err);
}

// A bare name is that of a WorkerGroup, or where there is none, of a PlacementGroup.
static int get_subject(const struct options *o, const char *ns, struct arena *a, struct subject *subject,
                       const struct json **ret, struct err *err)
{
    struct json *group = NULL;
    struct subject other;
    struct err none = ERR_INIT;
    if (get_group(o, ns, subject, a, &group, err) < 0 && !strchr(o->group, '/') &&
        find_subject(arena_printf(a, "plg/%s", o->group), a, &other, &none) == 0 &&
        get_group(o, ns, &other, a, &group, &none) == 0) {
        *subject = other;
        *err = ERR_INIT;
    }
    *ret = group;
    return err->code;
}

static int tell(const struct options *o, const char *ns, struct arena *a, struct err *err)
{
    struct subject subject;
    if (find_subject(o->group, a, &subject, err) < 0)
        return err->code;
    struct explain_input in = {.now_ms = clock_wall_ms(&clock_system)};
    struct json *pods = NULL, *events = NULL;
    struct err ignored = ERR_INIT;
    if (get_subject(o, ns, a, &subject, &in.group, err) < 0)
        return err->code;
    const char *selector = arena_printf(a, "cadre.dev/group=%s", subject.gang);
    const struct kubectl_args of_pods =
        kubectl_args(o, "get", "pods", "--namespace", ns, "--selector", selector, "--output", "json", NULL);
    if (get(&of_pods, a, &pods, &ignored) == 0) // whoever may not see them is told the rest
        in.pods = pods;
    ignored = ERR_INIT;
    const char *fields = arena_printf(a, "involvedObject.kind=%s,involvedObject.name=%s", subject.kind, subject.name);
    const struct kubectl_args of_events =
        kubectl_args(o, "get", "events", "--namespace", ns, "--field-selector", fields, "--output", "json", NULL);
    if (get(&of_events, a, &events, &ignored) == 0)
        in.events = events;
    struct buf out = BUF_INIT(OBJECTS_MAX);
    explain(&in, &out);
    plain_print(stdout, buf_str(&out), out.len);
    buf_done(&out);
    return 0;
}

// Whoever asks about a local run has not to look for what is wrong with kubectl.
static void tell_local(const struct options *o, struct err *err)
{
    struct err ignored = ERR_INIT;
    _cleanup_(free_p) char *server = NULL, *ns = NULL;
    if (local_find(o, &server, &ns, &ignored) < 0 || !server)
        return;
    *err = ERR_INIT;
    err_set(err, ERR_INVALID, "why is of groups in a cluster; how a local run fares is in its output, and in: info %s",
            o->group);
}

int verb_why(const struct options *o)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *ns = kubectl_namespace(o, &err);
    if (ns)
        tell(o, ns, &a, &err);
    if (err.code)
        tell_local(o, &err);
    arena_done(&a);
    return err.code ? report_err(&err) : 0;
}
