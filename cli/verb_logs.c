// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"
#include "cli/kubectl.h"
#include "cli/listen.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/arena.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_LEN = 1 << 20, SELECTOR_MAX = 16 << 10 };

struct logs {
    const struct cli_options *o;
    char *ns;
    char *selector;
    char tail[32];
    char *prefix; // prefix of the wanted lines; "" = all
    struct arena arena;
};

struct pod {
    const char *name, *container;
    bool has_agent; // which says the rank at the beginning of each line
};

static int by_name(const void *pa, const void *pb)
{
    const struct pod *a = pa, *b = pb;
    return str_cmp_natural(a->name, b->name);
}

// The first container is the worker. False: it has none yet, or no name.
static bool pod_of(const cJSON *v, struct arena *a, struct pod *ret)
{
    const cJSON *metadata = document_get(v, "metadata");
    const char *name = document_str(metadata, "name");
    bool has_agent = document_str(document_get(metadata, "annotations"), "cadre.dev/keys");
    const cJSON *containers = document_get(document_get(v, "spec"), "containers");
    const char *container = document_str(cJSON_GetArrayItem(containers, 0), "name");
    if (name && container)
        *ret = (struct pod){arena_strdup(a, name), arena_strdup(a, container), has_agent};
    return name && container;
}

static int list_pods(struct logs *l, struct pod **ret, size_t *ret_n, struct err *err)
{
    const struct kubectl_args args =
        kubectl_args(l->o, "get", "pods", "--namespace", l->ns, "--selector", l->selector, "--output", "json", NULL);
    _cleanup_(document_free) cJSON *root = kubectl_json(&args, err);
    const cJSON *items = document_get(root, "items"), *item;
    struct pod *pods = arena_array(&l->arena, (size_t)cJSON_GetArraySize(items), sizeof *pods);
    size_t n = 0;
    if (!root)
        return err->code;
    cJSON_ArrayForEach(item, items)
        n += pod_of(item, &l->arena, &pods[n]);
    qsort(pods, n, sizeof *pods, by_name);
    *ret = pods;
    *ret_n = n;
    return 0;
}

// Prints the lines of its ranks only. Pods of a PlacementGroup may run other groups, too, so the prefix has the group's
// name.
static void choose_lines(struct logs *l, bool shared)
{
    const char *group = shared ? l->o->group : "", *space = shared ? " " : "";
    free(l->prefix);
    if (l->o->request.rank >= 0)
        l->prefix = xasprintf("[%s%srank %" PRId64 "] ", group, space, l->o->request.rank);
    else
        l->prefix = shared ? xasprintf("[%s rank ", group) : xstrdup("");
}

// A group without its own pods runs in the pods of PlacementGroups. False: it has none there either.
static bool select_placementgroups(struct logs *l, const cJSON *group)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(SELECTOR_MAX);
    const cJSON *plg;
    cJSON_ArrayForEach(plg, document_get(document_get(document_get(group, "spec"), "placement"), "groups")) {
        const char *name = document_str(plg, "name");
        if (name)
            buf_printf(&names, "%s%s-plg", names.len ? "," : "", name);
    }
    bool some = names.len && !names.over;
    if (some) {
        free(l->selector);
        l->selector = xasprintf("cadre.dev/group in (%s)", buf_str(&names));
        choose_lines(l, true);
    }
    return some;
}

static int list_pods_of_others(struct logs *l, struct pod **ret, size_t *ret_n, struct err *err)
{
    const struct kubectl_args args = kubectl_args(l->o, "get", "workergroups.cadre.dev", l->o->group, "--namespace",
                                                  l->ns, "--output", "json", NULL);
    _cleanup_(document_free) cJSON *group = kubectl_json(&args, err);
    if (group && select_placementgroups(l, group))
        list_pods(l, ret, ret_n, err);
    if (!err->code && !*ret_n)
        err_set(err, ERR_NOT_FOUND, "group %s/%s has no pods; 'kubectl cadre why %s' says why", l->ns, l->o->group,
                l->o->group);
    return err->code;
}

static void print_line(const struct logs *l, const char *line, size_t len)
{
    if (!l->prefix[0] || (len >= strlen(l->prefix) && memcmp(line, l->prefix, strlen(l->prefix)) == 0))
        fwrite(line, 1, len, stdout);
}

// Prints the data as whole lines.
static void pass(const struct logs *l, struct buf *line, const char *data, size_t n)
{
    while (n) {
        const char *end = memchr(data, '\n', n);
        size_t len = end ? (size_t)(end - data) + 1 : n;
        bool fits = buf_append(line, data, len) == 0;
        if (!fits || end) { // what does not fit comes next
            print_line(l, buf_str(line), line->len);
            buf_reset(line);
            line->over = false;
        }
        data += fits ? len : 0;
        n -= fits ? len : 0;
    }
    fflush(stdout);
}

// Nobody reads our output any more: head(1), for example, has seen enough. A pipe reports this without a write.
static bool unread(const struct pollfd *out)
{
    return out->revents & (POLLERR | POLLNVAL) || ferror(stdout);
}

static int pass_all(const struct logs *l, const struct kubectl_args *args, struct err *err)
{
    struct buf line = BUF_INIT(LINE_MAX_LEN);
    char data[64 << 10];
    pid_t pid;
    struct pollfd fds[2] = {{.events = POLLIN}, {.fd = STDOUT_FILENO}};
    if (process_start(args->argv, &pid, &fds[0].fd, -1, err) < 0)
        return err->code;
    while (!process_interrupted() && !unread(&fds[1])) {
        ssize_t n = poll(fds, 2, 1000) > 0 && fds[0].revents ? read(fds[0].fd, data, sizeof data) : -1;
        if (n == 0)
            break;
        if (n > 0)
            pass(l, &line, data, (size_t)n);
    }
    print_line(l, buf_str(&line), line.len);
    buf_done(&line);
    close(fds[0].fd);
    if (!process_interrupted() && !unread(&fds[1]))
        return process_wait(pid);
    process_end(pid);
    return 1;
}

// The container of all pods. NULL: they differ, because the pods are of several PlacementGroups. kubectl then chooses:
// the operator writes the annotation for that.
static const char *one_container(const struct pod *pods, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!str_eq(pods[i].container, pods[0].container))
            return NULL;
    return pods[0].container;
}

static int follow(struct logs *l, const struct pod *pods, size_t n, struct err *err)
{
    char requests[32];
    const char *container = one_container(pods, n);
    snprintf(requests, sizeof requests, "%zu", n);
    const struct kubectl_args args =
        kubectl_args(l->o, "logs", "--follow", "--namespace", l->ns, "--selector", l->selector, "--tail", l->tail,
                     "--max-log-requests", requests, container ? "--container" : NULL, container, NULL);
    return pass_all(l, &args, err);
}

static int print_each(const struct logs *l, const struct pod *pods, size_t n, struct err *err)
{
    int worst = 0;
    for (size_t i = 0; i < n && !err->code && !process_interrupted() && !ferror(stdout); i++) {
        const struct kubectl_args args = kubectl_args(l->o, "logs", pods[i].name, "--namespace", l->ns, "--container",
                                                      pods[i].container, "--tail", l->tail, NULL);
        int status = pass_all(l, &args, err); // kubectl has printed what is wrong with this pod; the others follow
        worst = status ? status : worst;
    }
    return worst;
}

// Without an agent, a line does not say its rank, and nothing would be printed.
static int check_rank(const struct logs *l, const struct pod *first, struct err *err)
{
    if (l->o->request.rank < 0 || first->has_agent)
        return 0;
    return err_set(err, ERR_INVALID,
                   "group %s/%s has the runtime Plain, so its lines do not say their rank: leave out --rank, or run "
                   "'kubectl logs %s'",
                   l->ns, l->o->group, first->name);
}

int verb_logs(const struct cli_options *o)
{
    struct logs l = {.o = o, .arena = ARENA_INIT};
    struct err err = ERR_INIT;
    struct pod *pods = NULL;
    size_t n = 0;
    int status = 0;
    if (listen_serves(o, &status))
        return status;
    l.selector = xasprintf("cadre.dev/group=%s", o->group);
    snprintf(l.tail, sizeof l.tail, "%" PRId64, o->tail);
    choose_lines(&l, false);
    l.ns = kubectl_namespace(o, &err);
    if (l.ns && list_pods(&l, &pods, &n, &err) == 0 && (n || list_pods_of_others(&l, &pods, &n, &err) == 0) &&
        check_rank(&l, &pods[0], &err) == 0)
        status = o->follow ? follow(&l, pods, n, &err) : print_each(&l, pods, n, &err);
    arena_done(&l.arena);
    free(l.prefix);
    free(l.selector);
    free(l.ns);
    return err.code ? report_err(&err) : process_interrupted() ? 128 + process_interrupted() : status != 0;
}
