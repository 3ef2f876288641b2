// SPDX-License-Identifier: Apache-2.0
// The commands that send one request to the operator, and show its answer.
#include "cli/print_info.h"
#include "cli/print_result.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

static int print_killed(const struct cli_options *o, const struct proxy *c)
{
    (void)c;
    printf("rank %" PRId64 " of %s killed\n", o->request.rank, o->group);
    return 0;
}

static int print_nothing(const struct cli_options *o, const struct proxy *c)
{
    (void)o;
    (void)c;
    return 0;
}

int verb_request(const struct cli_options *o)
{
    static const struct {
        const char *method;
        int (*show)(const struct cli_options *o, const struct proxy *c);
        int pin;
    } requests[VERB_COUNT] = {
        [VERB_INFO] = {"group.info", info_print},
        [VERB_KILL] = {"group.kill", print_killed},
        [VERB_PUT] = {"object.put", result_print, .pin = 1}, // this session ends in a moment
        [VERB_GET] = {"object.get", result_print},
        [VERB_FREE] = {"object.free", print_nothing},
    };
    cadre_client_request r = o->request;
    r.method = requests[o->verb].method;
    r.pin = requests[o->verb].pin;
    return proxy_run(o, &r, requests[o->verb].show);
}
