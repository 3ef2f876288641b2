// SPDX-License-Identifier: Apache-2.0
// put, get and free: objects that workers keep.
#include "cli/controller.h"
#include "cli/report.h"
#include "cli/result.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 60 * 1000 };

static int run(const struct options *o, cadre_client_request *r)
{
    struct controller c;
    struct err err = ERR_INIT;
    int status = 0;
    if (controller_open(&c, o, &err) < 0)
        return report_err(&err);
    r->args = (cadre_client_json){o->args, strlen(o->args)};
    r->timeout_ms = o->timeout_ms < 0 ? TIMEOUT_MS : o->timeout_ms;
    if (controller_call(&c, r) != CADRE_CLIENT_OK)
        status = report_failure(&c.error);
    else if (o->verb != VERB_FREE)
        status = result_print(o, &c);
    controller_close(&c);
    return status;
}

int verb_put(const struct options *o)
{
    cadre_client_request r;
    cadre_client_request_init(&r, "object.put");
    r.rank = o->rank;
    r.dispatch = o->dispatch;
    r.pin = 1; // this session is over in a moment
    return run(o, &r);
}

int verb_get(const struct options *o)
{
    cadre_client_request r;
    cadre_client_request_init(&r, "object.get");
    return run(o, &r);
}

int verb_free(const struct options *o)
{
    cadre_client_request r;
    cadre_client_request_init(&r, "object.free");
    return run(o, &r);
}
