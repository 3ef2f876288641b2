// SPDX-License-Identifier: Apache-2.0
// put, get and free: objects that workers keep.
#include "cli/print_result.h"
#include "cli/verbs.h"

static int show_nothing(const struct options *o, const struct proxy *c)
{
    (void)o;
    (void)c;
    return 0;
}

int verb_put(const struct options *o)
{
    cadre_client_request r = o->request;
    r.method = "object.put";
    r.pin = 1; // this session is over in a moment
    return proxy_run(o, &r, result_print);
}

int verb_get(const struct options *o)
{
    cadre_client_request r = o->request;
    r.method = "object.get";
    return proxy_run(o, &r, result_print);
}

int verb_free(const struct options *o)
{
    cadre_client_request r = o->request;
    r.method = "object.free";
    return proxy_run(o, &r, show_nothing);
}
