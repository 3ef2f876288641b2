// SPDX-License-Identifier: Apache-2.0
#include "cli/controller.h"
#include "cli/json_text.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/mem.h"
#include "common/wire/traceparent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60 * 1000 };

static void print_rank(int64_t rank, cadre_client_json result)
{
    printf("%lld: ", (long long)rank);
    json_text_print(stdout, result.text, result.len);
}

// A batch goes into a file as it is, to whatever reads safetensors; a terminal can do nothing with it.
static int print_bytes(cadre_client_json result)
{
    struct err err = ERR_INIT;
    if (isatty(STDOUT_FILENO))
        err_set(&err, ERR_INVALID,
                "the method ran, and its result is a batch of tensors (%zu bytes): send it to a file", result.len);
    else if (fwrite(result.text, 1, result.len, stdout) != result.len)
        err_set(&err, ERR_IO, "cannot write the result");
    return err.code ? report_err(&err) : 0;
}

static int print_result(const struct options *o, const struct controller *c)
{
    cadre_client_json list = {buf_str(&c->result), c->result.len}, item;
    if (cadre_client_content_of(list) != CADRE_CLIENT_CONTENT_JSON)
        return print_bytes(list);
    if (o->output != OUTPUT_RANKS)
        json_text_print(stdout, list.text, list.len);
    else if (c->rank >= 0)
        print_rank(c->rank, list);
    else
        for (int64_t rank = 0; cadre_client_list_next(&list, &item) == 1; rank++)
            print_rank(rank, item);
    return 0;
}

// As other command lines have it; one that is malformed counts as not there.
static const char *trace_of_environment(void)
{
    const char *trace = getenv("TRACEPARENT");
    return trace && traceparent_valid(trace, strlen(trace)) ? trace : NULL;
}

int verb_call(const struct options *o)
{
    struct controller c;
    struct err err = ERR_INIT;
    cadre_client_request r;
    if (controller_open(&c, o, &err) < 0)
        return report_err(&err);
    cadre_client_request_init(&r, o->method);
    if (o->args)
        r.args = (cadre_client_json){o->args, strlen(o->args)};
    r.rank = o->rank;
    r.role = o->role;
    r.dispatch = o->dispatch;
    r.execute = o->execute;
    r.split = o->split;
    r.collect = o->collect;
    r.pad = o->pad;
    r.timeout_ms = o->timeout_ms < 0 ? TIMEOUT_MS : o->timeout_ms;
    r.attempt = o->attempt;
    r.refuse_when_not_ready = o->no_wait;
    r.no_result = o->no_reply;
    r.traceparent = trace_of_environment();
    int status = 0;
    if (controller_call(&c, &r) != CADRE_CLIENT_OK)
        status = report_failure(&c.error);
    else if (!o->no_reply)
        status = print_result(o, &c);
    controller_close(&c);
    return status;
}
