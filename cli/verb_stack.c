// SPDX-License-Identifier: Apache-2.0
// Asks each rank separately, so a rank that does not answer costs only some seconds.
#include "cli/child_process.h"
#include "cli/document.h"
#include "cli/plain.h"
#include "cli/proxy.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 5000, PAGE_TEXT = 32 };

static int show(const struct proxy *c, const cJSON *worker, struct err *err)
{
    _cleanup_(document_free) cJSON *answer = document_read(&c->result, err);
    const char *text = document_str(answer, "stack"), *pod = document_str(worker, "pod"),
               *node = document_str(worker, "node");
    if (!answer)
        return err->code;
    printf("rank %" PRId64 "%s%s%s%s:\n", document_i64(worker, "rank"), pod ? ", pod " : "", pod ? pod : "",
           node ? ", node " : "", node ? node : "");
    if (text)
        plain_print(stdout, text, strlen(text));
    printf("\n");
    return 0;
}

// Returns the exit status.
static int ask(const struct cli_options *o, struct proxy *c, const cJSON *worker)
{
    struct err err = ERR_INIT;
    cadre_client_request r = o->request;
    r.method = "worker.stack";
    r.rank = document_i64(worker, "rank");
    r.timeout_ms = ANSWER_MS;
    if (!cJSON_IsTrue(document_get(worker, "connected"))) {
        printf("rank %" PRId64 " is not connected\n\n", r.rank);
        return 1;
    }
    if (proxy_call(c, &r) != CADRE_CLIENT_OK)
        return report_failure(&c->error);
    return show(c, worker, &err) < 0 ? report_err(&err) : 0;
}

// The ranks from `from` on, as many as fit in one answer. *ret_next: the first rank that is left, or -1.
static int ask_page(const struct cli_options *o, struct proxy *c, int64_t from, int64_t *ret_next)
{
    char args[PAGE_TEXT];
    struct err err = ERR_INIT;
    int status = 0;
    cadre_client_request info = o->request;
    info.method = "group.info";
    info.rank = -1;
    snprintf(args, sizeof args, "[%" PRId64 "]", from);
    info.args = (cadre_client_json){args, strlen(args)};
    *ret_next = -1;
    if (proxy_call(c, &info) != CADRE_CLIENT_OK)
        return report_failure(&c->error);
    _cleanup_(document_free) cJSON *page = document_read(&c->result, &err);
    if (!page)
        return report_err(&err);
    DOCUMENT_FOREACH(worker, document_get(page, "workers"))
    if (!process_interrupted() && (o->request.rank < 0 || document_i64(worker, "rank") == o->request.rank))
        status |= ask(o, c, worker);
    if (o->request.rank < 0 && !document_integer(document_get(page, "next"), ret_next))
        *ret_next = -1;
    return status;
}

static int use(const struct cli_options *o, struct proxy *c, void *ctx)
{
    int status = 0;
    int64_t from = MAX(o->request.rank, INT64_C(0));
    (void)ctx;
    while (from >= 0 && !process_interrupted())
        status |= ask_page(o, c, from, &from);
    return process_interrupted() ? 128 + process_interrupted() : status;
}

int verb_stack(const struct cli_options *o)
{
    return proxy_with(o, use, NULL);
}
