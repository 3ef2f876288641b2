// SPDX-License-Identifier: Apache-2.0
// kubectl-cadre, found by kubectl as `kubectl cadre`.
#include "cli/child_process.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const struct options *o)
{
    switch (o->verb) {
    case VERB_CALL:
        return verb_call(o);
    case VERB_INFO:
        return verb_info(o);
    case VERB_KILL:
        return verb_kill(o);
    case VERB_STACK:
        return verb_stack(o);
    case VERB_TOP:
        return verb_top(o);
    case VERB_PUT:
        return verb_put(o);
    case VERB_GET:
        return verb_get(o);
    case VERB_FREE:
        return verb_free(o);
    case VERB_WHY:
        return verb_why(o);
    case VERB_LOGS:
        return verb_logs(o);
    case VERB_CA:
        return verb_ca(o);
    default:
        printf("kubectl-cadre %s\n", CADRE_VERSION);
        return 0;
    }
}

int main(int argc, char **argv)
{
    struct options o;
    cJSON_InitHooks(&(cJSON_Hooks){xmalloc, free}); // no memory ends the program there, too
    if (argc > 1 && str_eq(argv[1], "run"))
        return verb_run(argv + 1);
    int status = options_parse(argc, argv, &o);
    if (status < 0) {
        process_catch_signals();
        status = run(&o);
    }
    options_done(&o);
    return fflush(stdout) == 0 ? status : report_unwritten(errno);
}
