// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/command.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

enum { GRACE_DEFAULT_MS = 25 * 1000, TIMEOUT_DEFAULT_MS = 60 * 1000, GRACE_MAX_MS = 24 * 3600 * 1000 };

bool command_is(unsigned record_type)
{
    return record_type == RECORD_PREPARE || record_type == RECORD_START || record_type == RECORD_RESTART ||
           record_type == RECORD_STOP || record_type == RECORD_KILL;
}

struct command *command_new(enum record_type type, const char *group, int attempt)
{
    struct command *c = xcalloc(1, sizeof *c);
    c->type = type;
    c->attempt = attempt;
    c->refs = 1;
    c->group = arena_strdup(&c->arena, group);
    return c;
}

struct command *command_ref(struct command *c)
{
    c->refs++;
    return c;
}

void command_unref(struct command *c)
{
    if (!c || --c->refs > 0)
        return;
    arena_done(&c->arena);
    free(c);
}

// Reads members of one body. It keeps the first error.
struct command_reader {
    struct command *c;
    struct err *err;
};

static void wrong(struct command_reader *r, const char *name, const char *what)
{
    if (r->err->code == 0)
        err_set(r->err, ERR_INVALID, "%s: %s", name, what);
}

static int64_t read_number(struct command_reader *r, const struct json *from, const char *name, int64_t min,
                           int64_t max, int64_t fallback)
{
    const struct json *v = json_get(from, name);
    int64_t n = fallback;
    if (v && (!json_i64(v, &n) || n < min || n > max)) {
        wrong(r, name, "not a number in its range");
        return fallback;
    }
    if (!v && fallback < min)
        wrong(r, name, "missing");
    return n;
}

static const char *copy_text(struct command_reader *r, const struct json *v, const char *name)
{
    const char *s = json_str(v, &r->c->arena);
    if (!s)
        wrong(r, name, "not a string");
    return s;
}

static const char *read_text(struct command_reader *r, const struct json *from, const char *name, bool required)
{
    const struct json *v = json_get(from, name);
    if (!v && required)
        wrong(r, name, "missing");
    return v ? copy_text(r, v, name) : NULL;
}

static const struct json *read_list(struct command_reader *r, const struct json *from, const char *name, size_t max)
{
    const struct json *v = json_get(from, name);
    if (v && (v->type != JSON_LIST || json_count(v) > max)) {
        wrong(r, name, "not a list, or too long");
        return NULL;
    }
    return v;
}

static void read_prepare(struct command_reader *r, const struct json *body)
{
    r->c->master_addr = read_text(r, body, "masterAddr", false);
    r->c->master_ip = read_text(r, body, "masterIP", false);
    r->c->timeout_ms = read_number(r, body, "timeoutMs", 0, GRACE_MAX_MS, TIMEOUT_DEFAULT_MS);
    r->c->master_port = (int)read_number(r, body, "masterPort", 0, 65535, 0);
    if (!r->c->master_addr != !r->c->master_ip)
        wrong(r, "masterAddr", "masterAddr and masterIP go together");
}

// Reads the numbers of GPUs in the pod. Returns NULL if there is no list.
static const int *read_indices(struct command_reader *r, const struct json *from, const char *name, size_t *ret_n)
{
    const struct json *list = read_list(r, from, name, GPUS_MAX);
    if (!list)
        return NULL;
    int *indices = arena_array(&r->c->arena, json_count(list), sizeof *indices);
    JSON_FOREACH(v, list) {
        int64_t i;
        if (!json_i64(v, &i) || i < 0 || i >= GPUS_MAX)
            wrong(r, name, "not a number in its range");
        else
            indices[(*ret_n)++] = (int)i;
    }
    return indices;
}

static void read_processes(struct command_reader *r, const struct json *body)
{
    const struct json *list = read_list(r, body, "processes", COMMAND_PROCESSES_MAX);
    struct command *c = r->c;
    size_t n = json_count(list);
    if (n == 0)
        wrong(r, "processes", "missing");
    c->processes = arena_array(&c->arena, n, sizeof *c->processes);
    JSON_FOREACH(v, list) {
        struct environment_process *p = &c->processes[c->n_processes++];
        p->attempt = c->attempt;
        p->rank = (int)read_number(r, v, "rank", 0, INT32_MAX, -1);
        p->local_rank = (int)read_number(r, v, "localRank", 0, COMMAND_PROCESSES_MAX - 1, -1);
        p->ticket = read_text(r, v, "ticket", false);
        p->gpus = read_indices(r, v, "gpus", &p->n_gpus);
        for (const struct environment_process *other = c->processes; other < p; other++)
            if (other->rank == p->rank)
                wrong(r, "processes", "a rank twice");
    }
}

static void read_vars(struct command_reader *r, const struct json *body)
{
    const struct json *list = read_list(r, body, "env", COMMAND_VARS_MAX);
    struct environment_var *vars = arena_array(&r->c->arena, json_count(list), sizeof *vars);
    size_t n = 0;
    JSON_FOREACH(v, list) {
        const char *name = read_text(r, v, "name", true), *value = read_text(r, v, "value", false);
        if (str_empty(name) || strchr(name, '='))
            wrong(r, "env", "a name that is empty or has a =");
        vars[n++] = (struct environment_var){name, value ? value : ""};
    }
    r->c->env.vars = vars;
    r->c->env.n_vars = n;
}

static void read_gpus(struct command_reader *r, const struct json *body)
{
    struct gpus *g = &r->c->env.gpus;
    const struct json *gpus = json_get(body, "gpus");
    const char *visibility = read_text(r, gpus, "visibility", false);
    if (visibility && !str_eq(visibility, "Own") && !str_eq(visibility, "All"))
        wrong(r, "visibility", "must be Own or All");
    g->visibility = str_eq(visibility, "All") ? GPUS_ALL : GPUS_OWN;
    g->per_worker = json_get(gpus, "perWorker") ? (int)read_number(r, gpus, "perWorker", 0, GPUS_MAX, 0) : GPUS_SHARE;
    g->count = json_get(gpus, "count") ? (int)read_number(r, gpus, "count", 0, GPUS_MAX, 0) : GPUS_UNKNOWN;
    g->indices = read_indices(r, gpus, "indices", &g->n_indices);
}

static void read_argv(struct command_reader *r, const struct json *body)
{
    const struct json *list = read_list(r, body, "command", COMMAND_ARGS_MAX);
    size_t n = 0;
    if (!list)
        return;
    const char **argv = arena_array(&r->c->arena, json_count(list) + 1, sizeof *argv);
    JSON_FOREACH(v, list)
        argv[n++] = copy_text(r, v, "command");
    if (n == 0 || str_empty(argv[0]))
        wrong(r, "command", "empty");
    r->c->argv = argv;
}

static void read_start(struct command_reader *r, const struct json *body)
{
    struct environment_group *g = &r->c->env;
    read_processes(r, body);
    g->uid = r->c->group;
    g->name = read_text(r, body, "name", true);
    g->ns = read_text(r, body, "namespace", true);
    g->master_addr = read_text(r, body, "masterAddr", true);
    g->master_port = (int)read_number(r, body, "masterPort", 1, 65535, 0);
    g->world_size = (int)read_number(r, body, "worldSize", 1, INT32_MAX, 0);
    g->nnodes = (int)read_number(r, body, "nodes", 1, INT32_MAX, 0);
    g->node_rank = (int)read_number(r, body, "nodeRank", 0, INT32_MAX, -1);
    g->local_world_size = (int)read_number(r, body, "localWorldSize", 1, COMMAND_PROCESSES_MAX, 0);
    read_vars(r, body);
    read_gpus(r, body);
    read_argv(r, body);
    r->c->dir = read_text(r, body, "workingDir", false);
    for (size_t i = 0; i < r->c->n_processes; i++)
        if (r->c->processes[i].rank >= g->world_size || r->c->processes[i].local_rank >= g->local_world_size)
            wrong(r, "processes", "a rank outside of the world");
}

static void read_stop(struct command_reader *r, const struct json *body)
{
    const struct json *end = json_get(body, "end");
    if (end && end->type != JSON_BOOL)
        wrong(r, "end", "not true or false");
    r->c->end = json_is_true(end);
}

static void read_body(struct command_reader *r, const struct json *body)
{
    struct command *c = r->c;
    c->group = read_text(r, body, "group", true);
    c->attempt = (int)read_number(r, body, "attempt", 0, INT32_MAX, -1);
    c->grace_ms = read_number(r, body, "graceMs", 0, GRACE_MAX_MS, GRACE_DEFAULT_MS);
    if (str_empty(c->group))
        wrong(r, "group", "empty");
    if (c->type == RECORD_PREPARE)
        read_prepare(r, body);
    else if (c->type == RECORD_STOP)
        read_stop(r, body);
    else if (c->type == RECORD_KILL)
        c->rank = (int)read_number(r, body, "rank", 0, INT32_MAX, -1);
    else
        read_start(r, body);
}

int command_parse(enum record_type type, const char *json, size_t len, struct command **ret, struct err *err)
{
    struct command *c = command_new(type, NULL, 0);
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *body;
    struct command_reader r = {c, err};
    if (json_parse(json, len, NULL, &a, &body, err) == 0)
        read_body(&r, body);
    if (err->code == 0) {
        *ret = c;
        return 0;
    }
    command_unref(c);
    return err_wrap(err, "a command with contradictory values");
}
