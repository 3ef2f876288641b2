// SPDX-License-Identifier: Apache-2.0
#include "operator/local/manifest.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/launch.h"
#include "operator/api/object_decode.h"
#include "operator/api/yaml.h"
#include "operator/gateway/target.h"
#include "operator/local/container.h"
#include "operator/reconcile/accept.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1024 * 1024, WORDS_MAX = 4096 };

static void add_list(const char **to, size_t *n, const char *const *list, size_t n_list)
{
    for (size_t i = 0; i < n_list; i++)
        to[(*n)++] = list[i];
}

static const char **compose_command(const struct launch *l, const struct container *c, struct arena *a)
{
    const char **words = arena_array(a, l->n_command + c->n_command + c->n_args + 1, sizeof *words);
    size_t n = 0;
    add_list(words, &n, l->command, l->n_command);
    if (!n) {
        add_list(words, &n, c->command, c->n_command);
        add_list(words, &n, c->args, c->n_args);
    }
    return words;
}

// Returns the path on this machine for a path of the image.
static const char *mapped(const char *path, const char *map, struct arena *a)
{
    const char *sep = map ? strchr(map, '=') : NULL;
    size_t n = sep ? (size_t)(sep - map) : 0;
    return sep && path && strncmp(path, map, n) == 0 && path[n] == '/' ? arena_printf(a, "%s%s", sep + 1, path + n)
                                                                       : path;
}

// A variable without a value comes from the caller's environment.
static void add_variable(const char **to, size_t *n, const char *name, const char *value, struct arena *a)
{
    if (value)
        to[(*n)++] = arena_printf(a, "%s=%s", name, value);
}

static const char **compose_environment(const struct launch *l, const struct container *c, struct arena *a)
{
    const char **variables = arena_array(a, c->n_env + l->n_env + 1, sizeof *variables);
    size_t n = 0;
    for (size_t i = 0; i < c->n_env; i++)
        add_variable(variables, &n, c->env[i].name, c->env[i].value, a);
    for (size_t i = 0; i < l->n_env; i++)
        add_variable(variables, &n, l->env[i].name, l->env[i].value, a);
    return variables;
}

// Reports a missing module once, at the start. Otherwise every rank would report it in every attempt.
static int check_module(const struct manifest *m, const char *module, struct err *err)
{
    if (!module || (module[0] != '/' && m->working_dir) || access(module, R_OK) == 0)
        return 0;
    return err_set(err, ERR_NOT_FOUND,
                   "the module %s: %s; --map PREFIX=DIRECTORY says where a folder of the image is on this machine",
                   module, strerror(errno));
}

static int compose(const struct workergroup *g, const char *map, struct arena *a, struct manifest *ret, struct err *err)
{
    const struct workergroup_spec *s = &g->spec;
    struct worker_spec worker = s->worker;
    struct container container;
    struct launch launch;
    int r = container_read(s->template_json, a, &container, err);
    int64_t processes = (int64_t)s->replicas * s->workers_per_replica;
    if (r == 0 && processes > MANIFEST_PROCESSES_MAX)
        r = err_set(err, ERR_LIMIT, "replicas times workersPerReplica is %lld; this machine runs %d at most",
                    (long long)processes, MANIFEST_PROCESSES_MAX);
    worker.module = mapped(worker.module, map, a);
    launch_of(&worker, a, &launch);
    size_t words = launch.n_command + container.n_command + container.n_args;
    if (r == 0 && MAX(words, launch.n_env + container.n_env) > WORDS_MAX)
        r = err_set(err, ERR_LIMIT, "more than %d arguments or variables", WORDS_MAX);
    ret->command = compose_command(&launch, &container, a);
    ret->environment = compose_environment(&launch, &container, a);
    ret->processes = (int)processes;
    ret->working_dir = mapped(worker.working_dir, map, a);
    return r < 0 ? r : check_module(ret, worker.module, err);
}

// Refuses what the API server or the operator would refuse in a cluster.
static int check(const struct workergroup *g, struct arena *a, struct err *err)
{
    const struct worker_spec *w = &g->spec.worker;
    struct refusal refusal;
    if ((w->module != NULL) + (w->python != NULL) + (w->n_command > 0) > 1)
        return err_set(err, ERR_INVALID, "spec.worker: set at most one of module, python and command");
    if (w->has_code && !w->python)
        return err_set(err, ERR_INVALID,
                       "spec.worker: code needs python, the name of the module that the class is from");
    if (w->has_archive && !w->python)
        return err_set(err, ERR_INVALID, "spec.worker: archive needs python, whose workers import from it");
    if (w->n_preload && !w->python)
        return err_set(err, ERR_INVALID, "spec.worker: preload needs python: only workers in Python have a template");
    if (g->spec.suspend)
        return err_set(err, ERR_INVALID,
                       "spec.suspend is true, so there is nothing to run: set it to false, or leave it out");
    return group_accept_local(g, a, &refusal) ? 0 : err_set(err, ERR_INVALID, "%s", refusal.message);
}

static int check_text(const char *text, struct arena *a, struct err *err)
{
    struct json *root;
    const char *version = kind_info(KIND_WORKERGROUP)->api_version;
    int r = json_parse(text, strlen(text), NULL, a, &root, err);
    if (r < 0)
        return r;
    const struct json *its = json_get(root, "apiVersion");
    const char *unknown = workergroup_unknown(json_get(root, "spec"), a);
    if (its && !json_str_is(its, version))
        return err_set(err, ERR_INVALID, "apiVersion must be %s, the only one that this version supports", version);
    return unknown ? err_set(err, ERR_INVALID, "a WorkerGroup has no field %s; docs/api.md lists all fields", unknown)
                   : 0;
}

static bool is_wanted(const char *json, const char *name, struct arena *a, const char **names)
{
    struct json *root;
    struct err ignored = ERR_INIT;
    static const char *const prune[] = {"spec", NULL};
    if (json_parse(json, strlen(json), prune, a, &root, &ignored) < 0 ||
        !json_str_is(json_get(root, "kind"), "WorkerGroup"))
        return false;
    const char *its = json_str(json_get(json_get(root, "metadata"), "name"), a);
    *names = arena_printf(a, "%s%s%s", *names, **names ? ", " : "", its ? its : "one without a name");
    return !name || str_eq(its, name);
}

static int choose(const char *const *texts, size_t n, const char *name, struct arena *a, const char **ret,
                  struct err *err)
{
    const char *names = "";
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (is_wanted(texts[i], name, a, &names)) {
            *ret = texts[i];
            found++;
        }
    if (found == 1)
        return 0;
    if (!*names)
        return err_set(err, ERR_INVALID, "the file has no WorkerGroup");
    return err_set(err, ERR_INVALID, "name one of its WorkerGroups with --group: %s", names);
}

static int read_group(const char *text, size_t len, const char *name, struct arena *a, const struct workergroup **ret,
                      struct err *err)
{
    const char *const *texts;
    const char *json = NULL;
    const struct object *o = NULL;
    size_t n;
    int r = yaml_to_json(text, len, a, &texts, &n, err); // JSON is YAML, too
    if (r == 0)
        r = choose(texts, n, name, a, &json, err);
    if (r == 0)
        r = check_text(json, a, err);
    if (r == 0)
        r = object_decode(KIND_WORKERGROUP, json, strlen(json), &o, err);
    if (r == 0)
        *ret = workergroup_of(o);
    return r;
}

static int parse(const char *text, size_t len, const char *name, const char *map, struct manifest *ret, struct err *err)
{
    *ret = (struct manifest){.group = NULL};
    int r = read_group(text, len, name, &ret->arena, &ret->group, err);
    if (r == 0)
        r = check(ret->group, &ret->arena, err);
    if (r == 0)
        r = compose(ret->group, map, &ret->arena, ret, err);
    if (r < 0)
        manifest_done(ret);
    return r;
}

int manifest_parse(const char *text, const char *map, struct manifest *ret, struct err *err)
{
    return parse(text, strlen(text), NULL, map, ret, err);
}

int manifest_read(const char *file, const char *name, const char *map, struct manifest *ret, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
    struct err why = ERR_INIT;
    *ret = (struct manifest){.group = NULL};
    int r = file_read(str_eq(file, "-") ? "/dev/stdin" : file, &text, err);
    if (r < 0)
        return r;
    r = parse(buf_str(&text), text.len, name, map, ret, &why);
    return r < 0 ? err_set(err, r, "%s: %s", file, why.msg) : 0;
}

int manifest_check_name(const char *ns, const char *name, struct err *err)
{
    struct err ignored = ERR_INIT;
    struct target target;
    _cleanup_(free_p) char *path = xasprintf("/v1/namespaces/%s/workergroups/%s", ns, name);
    if (target_parse(path, &target, &ignored) == 0 && str_eq(target.group, name) && str_eq(target.ns, ns))
        return 0;
    return err_set(err, ERR_INVALID,
                   "the group %.100s of the namespace %.100s: a name has 1 to 63 characters (a to z, 0 to 9, -), and "
                   "does not begin or end with -",
                   name, ns);
}

void manifest_done(struct manifest *m)
{
    object_unref(m->group ? &m->group->obj : NULL);
    arena_done(&m->arena);
    m->group = NULL;
}
