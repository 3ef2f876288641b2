// SPDX-License-Identifier: Apache-2.0
#include "cli/controller.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

enum { TIMEOUT_MS = 60 * 1000 };

int verb_kill(const struct options *o)
{
    struct controller c;
    struct err err = ERR_INIT;
    cadre_client_request r;
    int status = 0;
    if (controller_open(&c, o, &err) < 0)
        return report_err(&err);
    cadre_client_request_init(&r, "group.kill");
    r.rank = o->rank;
    r.attempt = o->attempt;
    r.timeout_ms = o->timeout_ms < 0 ? TIMEOUT_MS : o->timeout_ms;
    if (controller_call(&c, &r) == CADRE_CLIENT_OK)
        printf("rank %" PRId64 " of %s killed\n", o->rank, o->group);
    else
        status = report_failure(&c.error);
    controller_close(&c);
    return status;
}
