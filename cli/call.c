// SPDX-License-Identifier: Apache-2.0
#include "cli/controller.h"
#include "cli/report.h"
#include "cli/result.h"
#include "cli/verbs.h"

#include "common/wire/traceparent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60 * 1000, LAST_LINES_MS = 600 };

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
    r.by_reference = r.pin = o->keep; // this session is over in a moment
    int status = 0;
    if (controller_call(&c, &r) != CADRE_CLIENT_OK)
        status = report_failure(&c.error);
    else if (!o->no_reply)
        status = result_print(o, &c);
    if (o->logs) {
        fflush(stdout);
        controller_linger(&c, LAST_LINES_MS);
    }
    controller_close(&c);
    return status;
}
