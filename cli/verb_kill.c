// SPDX-License-Identifier: Apache-2.0
#include "cli/proxy.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

static int show(const struct options *o, const struct proxy *c)
{
    (void)c;
    printf("rank %" PRId64 " of %s killed\n", o->request.rank, o->group);
    return 0;
}

int verb_kill(const struct options *o)
{
    cadre_client_request r = o->request;
    r.method = "group.kill";
    return proxy_run(o, &r, show);
}
