// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/agent_report.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"

#include <string.h>

struct report_reader {
    struct arena *arena;
    struct err *err; // the first wrong member
};

static void wrong(const struct report_reader *r, const char *name, const char *what)
{
    if (r->err->code == 0)
        err_set(r->err, ERR_INVALID, "%s: %s", name, what);
}

static int32_t read_number(const struct report_reader *r, const struct json *from, const char *name, int32_t min,
                           int32_t max, bool required)
{
    const struct json *v = json_get(from, name);
    int64_t n = 0;
    if (!v) {
        if (required)
            wrong(r, name, "missing");
        return 0;
    }
    if (!json_i64(v, &n) || n < min || n > max) {
        wrong(r, name, "not a number in its range");
        return 0;
    }
    return (int32_t)n;
}

static const char *read_text(const struct report_reader *r, const struct json *from, const char *name)
{
    const struct json *v = json_get(from, name);
    const char *s = json_str(v, r->arena);
    if (v && !s)
        wrong(r, name, "not a string");
    return s;
}

// A group that was never prepared has no attempt. Agents then write a negative number.
static int32_t read_attempt(const struct report_reader *r, const struct json *from)
{
    return MAX(read_number(r, from, "attempt", -1, INT32_MAX, true), 0);
}

static const char *read_group(const struct report_reader *r, const struct json *from)
{
    const char *group = read_text(r, from, "group");
    if (group && (!group[0] || strlen(group) > REPORT_GROUP_MAX))
        wrong(r, "group", "not a UID");
    return group;
}

// Returns the index of a name. If it is none of them, returns 0 and sets the error.
static size_t read_name(const struct report_reader *r, const struct json *from, const char *name,
                        const char *const *names, size_t n)
{
    const struct json *v = json_get(from, name);
    for (size_t i = 0; i < n; i++)
        if (json_str_is(v, names[i]))
            return i;
    wrong(r, name, v ? "none of the names that are known" : "missing");
    return 0;
}

static void read_exit(const struct report_reader *r, const struct json *from, struct agent_process *p)
{
    p->state = AGENT_PROCESS_EXITED;
    p->exit_code = read_number(r, from, "exitCode", INT32_MIN, INT32_MAX, true);
    p->signal = read_number(r, from, "signal", 0, INT32_MAX, false);
    p->oom = json_is_true(json_get(from, "outOfMemory"));
    p->message = read_text(r, from, "message");
    p->last_lines = read_text(r, from, "lastLines");
}

static void read_process(const struct report_reader *r, const struct json *from, bool hello, struct agent_process *p)
{
    static const char *const names[] = {
        [AGENT_PROCESS_STARTING] = "Starting", [AGENT_PROCESS_RUNNING] = "Running", [AGENT_PROCESS_EXITED] = "Exited"};
    p->rank = read_number(r, from, "rank", 0, INT32_MAX, true);
    p->attempt = read_attempt(r, from);
    p->state = AGENT_PROCESS_RUNNING;
    if (!hello)
        return;
    p->state = (enum agent_process_state)read_name(r, from, "state", names, ARRAY_LEN(names));
    if (p->state == AGENT_PROCESS_EXITED)
        read_exit(r, from, p);
}

static void read_processes(const struct report_reader *r, const struct json *from, struct decoded_report *ret)
{
    const struct json *list = json_get(from, "processes");
    size_t n = json_count(list);
    if (list && (list->type != JSON_LIST || n > REPORT_PROCESSES_MAX)) {
        wrong(r, "processes", "not a list, or too long");
        return;
    }
    ret->processes = arena_array(r->arena, n, sizeof *ret->processes);
    ret->processes_told = list != NULL;
    JSON_FOREACH(v, list)
        read_process(r, v, ret->type == RECORD_HELLO, &ret->processes[ret->n_processes++]);
}

static uint8_t read_command(const struct report_reader *r, const struct json *from)
{
    static const uint8_t types[] = {RECORD_PREPARE, RECORD_START, RECORD_RESTART, RECORD_STOP, RECORD_KILL};
    const char *names[ARRAY_LEN(types)];
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        names[i] = record_type_name(types[i]);
    return types[read_name(r, from, "command", names, ARRAY_LEN(types))];
}

static void read_refused(const struct report_reader *r, const struct json *from, struct decoded_report *ret)
{
    const char *message = read_text(r, from, "message");
    ret->command = read_command(r, from);
    ret->group = read_group(r, from);
    ret->attempt = ret->group ? read_attempt(r, from) : 0;
    if (ret->group && ret->command == RECORD_KILL)
        ret->rank = (uint32_t)read_number(r, from, "rank", 0, INT32_MAX, true);
    ret->error = str_empty(message) ? "the agent refused the command" : message;
}

static void read_report(const struct report_reader *r, const struct json *from, struct decoded_report *ret)
{
    if (ret->type == RECORD_REFUSED) {
        read_refused(r, from, ret);
        return;
    }
    ret->group = read_group(r, from);
    ret->attempt = read_attempt(r, from);
    if (!ret->group)
        wrong(r, "group", "missing");
    if (ret->type == RECORD_PREPARED) {
        ret->error = read_text(r, from, "error");
        ret->taken_port = ret->error ? read_number(r, from, "takenPort", 0, UINT16_MAX, false) : 0;
    }
    if (ret->type == RECORD_STARTED) {
        ret->slow = read_text(r, from, "withoutTemplate");
        read_processes(r, from, ret);
    }
    if (ret->type == RECORD_EXITED) {
        ret->processes = arena_new(r->arena, struct agent_process);
        ret->n_processes = 1;
        read_process(r, from, false, ret->processes);
        read_exit(r, from, ret->processes);
    }
}

static void read_hello_group(const struct report_reader *r, const struct json *from, struct decoded_report *ret)
{
    static const char *const names[] = {[AGENT_IDLE] = "Idle",
                                        [AGENT_PREPARING] = "Preparing",
                                        [AGENT_PREPARED] = "Prepared",
                                        [AGENT_RUNNING] = "Running",
                                        [AGENT_STOPPING] = "Stopping"};
    *ret =
        (struct decoded_report){.type = RECORD_HELLO, .group = read_group(r, from), .attempt = read_attempt(r, from)};
    ret->state = (enum agent_state)read_name(r, from, "state", names, ARRAY_LEN(names));
    ret->slow = read_text(r, from, "withoutTemplate");
    if (!ret->group)
        wrong(r, "group", "missing");
    read_processes(r, from, ret);
}

static void read_hello(const struct report_reader *r, const struct json *from, size_t max, struct decoded_report **ret,
                       size_t *ret_n)
{
    const struct json *list = json_get(from, "groups");
    size_t n = json_count(list);
    if (!json_str_is(json_get(from, "role"), "agent"))
        wrong(r, "role", "must be agent");
    if (read_number(r, from, "version", 1, INT32_MAX, true) != 1)
        wrong(r, "version", "must be 1, the version of this operator");
    if (list && (list->type != JSON_LIST || n > max)) {
        wrong(r, "groups", "not a list, or too long");
        return;
    }
    *ret = arena_array(r->arena, n, sizeof **ret);
    JSON_FOREACH(v, list)
        read_hello_group(r, v, &(*ret)[(*ret_n)++]);
}

bool report_type(unsigned record_type)
{
    switch (record_type) {
    case RECORD_PREPARED:
    case RECORD_STARTED:
    case RECORD_EXITED:
    case RECORD_STOPPED:
    case RECORD_REFUSED:
        return true;
    default:
        return false;
    }
}

// The tree of the text is freed with the call. Everything that is read from it is in the caller's arena.
static int parse(const char *body, size_t len, struct arena *tree, struct json **ret, struct err *err)
{
    int r = json_parse(body, len, NULL, tree, ret, err);
    if (r == 0 && (*ret)->type != JSON_OBJECT)
        r = err_set(err, ERR_INVALID, "not an object");
    return r;
}

int report_decode(uint8_t type, const char *body, size_t len, struct arena *a, struct decoded_report *ret,
                  struct err *err)
{
    struct arena tree = ARENA_INIT;
    struct json *root;
    *ret = (struct decoded_report){.type = type};
    if (parse(body, len, &tree, &root, err) == 0)
        read_report(&(struct report_reader){a, err}, root, ret);
    arena_done(&tree);
    return err->code ? err_wrap(err, "%s of an agent", record_type_name(type)) : 0;
}

int report_decode_hello(const char *body, size_t len, size_t max, struct arena *a, struct decoded_report **ret,
                        size_t *ret_n, struct err *err)
{
    struct arena tree = ARENA_INIT;
    struct json *root;
    *ret = NULL;
    *ret_n = 0;
    if (parse(body, len, &tree, &root, err) == 0)
        read_hello(&(struct report_reader){a, err}, root, max, ret, ret_n);
    arena_done(&tree);
    return err->code ? err_wrap(err, "HELLO of an agent") : 0;
}

// Output of processes

static bool read_line(const struct json *v, struct arena *a, struct printed_line *ret)
{
    int64_t rank;
    if (v->type != JSON_LIST || json_count(v) != 2 || !json_i64(v->child, &rank) || rank < 0 || rank > INT32_MAX)
        return false;
    *ret = (struct printed_line){(uint32_t)rank, json_str(v->child->next, a)};
    return ret->text != NULL;
}

int report_decode_output(const char *body, size_t len, struct arena *a, struct printed *ret, struct err *err)
{
    struct json *root;
    int64_t dropped = 0;
    int r = json_parse(body, len, NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "OUTPUT of an agent");
    const struct json *lines = json_get(root, "lines");
    *ret = (struct printed){.group = json_str(json_get(root, "group"), a)};
    if (!ret->group || !lines || lines->type != JSON_LIST)
        return err_set(err, ERR_INVALID, "OUTPUT of an agent: needs \"group\" and \"lines\"");
    ret->lines = arena_array(a, json_count(lines) + 1, sizeof *ret->lines);
    JSON_FOREACH(v, lines)
        if (!read_line(v, a, &ret->lines[ret->n++]))
            return err_set(err, ERR_INVALID, "OUTPUT of an agent: \"lines\" must be a list of [rank, text]");
    ret->dropped = json_i64(json_get(root, "dropped"), &dropped) && dropped > 0 ? (size_t)dropped : 0;
    return 0;
}
