// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"
#include "cli/kubectl.h"
#include "cli/local.h"
#include "cli/plain.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20 };

struct subject {
    const char *resource, *kind, *name;
    const char *gang; // value of the label of its pods
};

// "NAME" of a WorkerGroup, or with its kind, as kubectl writes it: "plg/NAME".
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
    return err_set(err, ERR_INVALID, "%.200s is not a group: GROUP is a name, or plg/NAME for a PlacementGroup", text);
}

static cJSON *get_group(const struct cli_options *o, const char *ns, const struct subject *subject, struct err *err)
{
    const struct kubectl_args args =
        kubectl_args(o, "get", subject->resource, subject->name, "--namespace", ns, "--output", "json", NULL);
    return kubectl_json(&args, err);
}

// A bare name means a WorkerGroup. If there is none, it means a PlacementGroup.
static cJSON *get_subject(const struct cli_options *o, const char *ns, struct arena *a, struct subject *subject,
                          struct err *err)
{
    cJSON *group = get_group(o, ns, subject, err);
    struct subject other;
    struct err none = ERR_INIT;
    if (group || strchr(o->group, '/') || find_subject(arena_printf(a, "plg/%s", o->group), a, &other, &none) < 0 ||
        !(group = get_group(o, ns, &other, &none)))
        return group;
    *subject = other;
    *err = ERR_INIT;
    return group;
}

static int tell(const struct cli_options *o, const char *ns, struct arena *a, struct err *err)
{
    struct subject subject;
    if (find_subject(o->group, a, &subject, err) < 0)
        return err->code;
    _cleanup_(document_free) cJSON *group = get_subject(o, ns, a, &subject, err), *pods = NULL, *events = NULL;
    if (!group)
        return err->code;
    struct err ignored = ERR_INIT; // a user who may not read all objects still gets the rest
    const char *selector = arena_printf(a, "cadre.dev/group=%s", subject.gang);
    const struct kubectl_args of_pods =
        kubectl_args(o, "get", "pods", "--namespace", ns, "--selector", selector, "--output", "json", NULL);
    pods = kubectl_json(&of_pods, &ignored);
    const char *fields = arena_printf(a, "involvedObject.kind=%s,involvedObject.name=%s", subject.kind, subject.name);
    const struct kubectl_args of_events =
        kubectl_args(o, "get", "events", "--namespace", ns, "--field-selector", fields, "--output", "json", NULL);
    events = kubectl_json(&of_events, &ignored);
    const struct explain_input in = {group, pods, events, .now_ms = clock_wall_ms(&clock_system)};
    _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    explain(&in, &out);
    plain_print(stdout, buf_str(&out), out.len);
    return 0;
}

// A user of a local run need not look for a fault in kubectl.
static void tell_local(const struct cli_options *o, struct err *err)
{
    struct err ignored = ERR_INIT;
    _cleanup_(free_p) char *server = NULL, *ns = NULL;
    if (local_find(o, &server, &ns, &ignored) < 0 || !server)
        return;
    *err = ERR_INIT;
    err_set(err, ERR_INVALID, "why is for groups in a cluster; for a local run, read its output or run: info %s",
            o->group);
}

int verb_why(const struct cli_options *o)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *ns = kubectl_namespace(o, &err);
    if (ns)
        tell(o, ns, &a, &err);
    if (err.code)
        tell_local(o, &err);
    return err.code ? report_err(&err) : 0;
}
