// SPDX-License-Identifier: Apache-2.0
#include "cli/per_rank.h"
#include "cli/print_result.h"
#include "cli/verbs.h"

#include "common/wire/traceparent.h"

#include <stdlib.h>
#include <string.h>

// From the environment, as for other command lines. A malformed one counts as missing.
static const char *trace_of_environment(void)
{
    const char *trace = getenv("TRACEPARENT");
    return trace && traceparent_valid(trace, strlen(trace)) ? trace : NULL;
}

static int show(const struct cli_options *o, const struct proxy *c)
{
    return o->request.no_result ? 0 : result_print(o, c);
}

static int by_rank(const struct cli_options *o, struct proxy *c, void *ctx)
{
    return ranks_call(o, c, ctx);
}

int verb_call(const struct cli_options *o)
{
    cadre_client_request r = o->request;
    r.traceparent = trace_of_environment();
    return o->output == OUTPUT_RANKS ? proxy_with(o, by_rank, &r) : proxy_run(o, &r, show);
}
