// SPDX-License-Identifier: Apache-2.0
#include "cli/print_info.h"

#include "cli/document.h"
#include "cli/plain.h"
#include "cli/report.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_MAX = 64 << 10 };

static const char *text_of(const cJSON *v, const char *name)
{
    const char *s = document_str(v, name);
    return s ? s : "-";
}

static void print_workers(const cJSON *info)
{
    const cJSON *w;
    printf("%-6s %-10s %-8s %-30s %s\n", "RANK", "CONNECTED", "ATTEMPT", "POD", "NODE");
    cJSON_ArrayForEach(w, document_get(info, "workers")) {
        bool connected = cJSON_IsTrue(document_get(w, "connected"));
        char attempt[24] = "-";
        if (connected)
            snprintf(attempt, sizeof attempt, "%" PRId64, document_i64(w, "attempt"));
        printf("%-6" PRId64 " %-10s %-8s %-30s %s\n", document_i64(w, "rank"), connected ? "yes" : "no", attempt,
               text_of(w, "pod"), text_of(w, "node"));
    }
    if (document_get(info, "next"))
        printf("and ranks %" PRId64 " to %" PRId64 ": kubectl cadre call %s group.info '[%" PRId64 "]' lists more\n",
               document_i64(info, "next"), document_i64(info, "worldSize") - 1, text_of(info, "name"),
               document_i64(info, "next"));
}

// "-" means that the driver does not report the number.
static void print_number(const cJSON *gpu, const char *name, int width, int64_t unit)
{
    char text[24] = "-";
    if (document_get(gpu, name))
        snprintf(text, sizeof text, "%" PRId64, document_i64(gpu, name) / unit);
    printf("%-*s ", width, text);
}

static void print_gpu(const cJSON *worker, const cJSON *gpu)
{
    printf("%-6" PRId64 " %-4" PRId64 " %-6s ", document_i64(worker, "rank"), document_i64(gpu, "index"),
           text_of(gpu, "state"));
    print_number(gpu, "xid", 5, 1);
    print_number(gpu, "eccUncorrected", 6, 1);
    print_number(gpu, "temperature", 5, 1);
    print_number(gpu, "usedBytes", 9, 1 << 20);
    print_number(gpu, "memoryBytes", 10, 1 << 20);
    printf("%-24s %s\n", text_of(gpu, "name"), text_of(gpu, "uuid"));
}

// As reported by the agents, if there are any.
static void print_gpus(const cJSON *info)
{
    const cJSON *w, *gpu;
    bool any = false;
    cJSON_ArrayForEach(w, document_get(info, "workers")) {
        cJSON_ArrayForEach(gpu, document_get(w, "gpus")) {
            if (!any)
                printf("\n%-6s %-4s %-6s %-5s %-6s %-5s %-9s %-10s %-24s %s\n", "RANK", "GPU", "STATE", "XID", "ECC",
                       "TEMP", "USED MiB", "TOTAL MiB", "NAME", "UUID");
            any = true;
            print_gpu(w, gpu);
        }
    }
}

static void print_methods(const cJSON *of)
{
    const cJSON *methods = document_get(of, "methods"), *m;
    if (!cJSON_GetArraySize(methods))
        return;
    printf("\n%-24s %-16s %s\n", "METHOD", "DISPATCH", "EXECUTE");
    cJSON_ArrayForEach(m, methods)
        printf("%-24s %-16s %s\n", text_of(m, "name"), text_of(m, "dispatch"), text_of(m, "execute"));
}

// The methods of the group, or of each of its roles.
static void print_abilities(const cJSON *info)
{
    const cJSON *role;
    print_methods(info);
    cJSON_ArrayForEach(role, document_get(info, "roles")) {
        printf("\nRole:     %s (class %s)", text_of(role, "name"), text_of(role, "class"));
        print_methods(role);
    }
}

// Ranks connect to every replica of the operator. This shows the connections of one replica.
static void print_ready(const cJSON *info)
{
    const char *replica = document_str(info, "replica");
    printf("Ready:    %s (%" PRId64 " of %" PRId64 " ranks are connected%s%s)\n",
           cJSON_IsTrue(document_get(info, "ready")) ? "yes" : "no", document_i64(info, "connected"),
           document_i64(info, "worldSize"), replica ? " to " : "", replica ? replica : "");
}

// STATUS and MESSAGE. A message that comes from the condition Ready begins with the status; a local run has only
// messages.
static void print_status(const cJSON *info)
{
    const char *status = document_str(info, "status"), *message = document_str(info, "message");
    _cleanup_(buf_done) struct buf line = BUF_INIT(STATUS_MAX);
    if (!str_empty(status) && (str_empty(message) || !str_starts(message, status)))
        buf_printf(&line, "%s%s", status, str_empty(message) ? "" : ": ");
    buf_puts(&line, message ? message : "");
    if (!line.len)
        return;
    fputs("Status:   ", stdout);
    plain_print(stdout, buf_str(&line), line.len);
    putchar('\n');
}

static int print_info(const struct buf *result, struct err *err)
{
    _cleanup_(document_free) cJSON *info = document_read(result, err);
    if (!info)
        return err->code;
    printf("Group:    %s/%s\n", text_of(info, "namespace"), text_of(info, "name"));
    print_status(info);
    printf("Attempt:  %" PRId64 "\n", document_i64(info, "attempt"));
    print_ready(info);
    printf("\n");
    print_workers(info);
    print_gpus(info);
    print_abilities(info);
    return 0;
}

int info_print(const struct cli_options *o, const struct proxy *c)
{
    struct err err = ERR_INIT;
    if (o->output == OUTPUT_JSON)
        plain_print_json(stdout, buf_str(&c->result), c->result.len);
    else if (print_info(&c->result, &err) < 0)
        return report_err(&err);
    return 0;
}
