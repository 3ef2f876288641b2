// SPDX-License-Identifier: Apache-2.0
#include "cli/controller.h"
#include "cli/json_text.h"
#include "cli/plain.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/json.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct json *v, const char *name, struct arena *a)
{
    const char *s = json_str(json_get(v, name), a);
    return s ? s : "-";
}

static int64_t number_of(const struct json *v, const char *name)
{
    int64_t n = 0;
    json_i64(json_get(v, name), &n);
    return n;
}

static bool is_true(const struct json *v, const char *name)
{
    const struct json *m = json_get(v, name);
    return m && m->type == JSON_BOOL && m->len == 4;
}

static void print_workers(const struct json *info, struct arena *a)
{
    printf("%-6s %-10s %-8s %-30s %s\n", "RANK", "CONNECTED", "ATTEMPT", "POD", "NODE");
    JSON_FOREACH(w, json_get(info, "workers")) {
        bool connected = is_true(w, "connected");
        char attempt[24] = "-";
        if (connected)
            snprintf(attempt, sizeof attempt, "%" PRId64, number_of(w, "attempt"));
        printf("%-6" PRId64 " %-10s %-8s %-30s %s\n", number_of(w, "rank"), connected ? "yes" : "no", attempt,
               text_of(w, "pod", a), text_of(w, "node", a));
    }
}

static void print_methods(const struct json *of, struct arena *a)
{
    const struct json *methods = json_get(of, "methods");
    if (!json_count(methods))
        return;
    printf("\n%-24s %-16s %s\n", "METHOD", "DISPATCH", "EXECUTE");
    JSON_FOREACH(m, methods)
        printf("%-24s %-16s %s\n", text_of(m, "name", a), text_of(m, "dispatch", a), text_of(m, "execute", a));
}

// Of the group, or of each of its roles.
static void print_abilities(const struct json *info, struct arena *a)
{
    print_methods(info, a);
    JSON_FOREACH(role, json_get(info, "roles")) {
        printf("\nRole:     %s (class %s)", text_of(role, "name", a), text_of(role, "class", a));
        print_methods(role, a);
    }
}

// Ranks connect to every replica of the operator, and this is what one of them sees.
static void print_ready(const struct json *info, struct arena *a)
{
    const char *replica = json_str(json_get(info, "replica"), a);
    printf("Ready:    %s (%" PRId64 " of %" PRId64 " ranks are connected%s%s)\n", is_true(info, "ready") ? "yes" : "no",
           number_of(info, "connected"), number_of(info, "worldSize"), replica ? " to " : "", replica ? replica : "");
}

static int print_info(const struct buf *result, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *info;
    if (json_parse(buf_str(result), result->len, NULL, &a, &info, err) == 0) {
        const char *message = json_str(json_get(info, "message"), &a);
        printf("Group:    %s/%s\n", text_of(info, "namespace", &a), text_of(info, "name", &a));
        printf("Attempt:  %" PRId64 "\n", number_of(info, "attempt"));
        print_ready(info, &a);
        if (message && *message) {
            printf("Message:  ");
            plain_print(stdout, message, strlen(message));
            printf("\n");
        }
        printf("\n");
        print_workers(info, &a);
        print_abilities(info, &a);
    }
    arena_done(&a);
    return err->code;
}

static int show(const struct options *o, const struct controller *c)
{
    struct err err = ERR_INIT;
    if (o->output == OUTPUT_JSON)
        json_text_print(stdout, buf_str(&c->result), c->result.len);
    else if (print_info(&c->result, &err) < 0)
        return report_err(&err);
    return 0;
}

int verb_info(const struct options *o)
{
    cadre_client_request r = o->request;
    r.method = "group.info";
    return controller_run(o, &r, show);
}
