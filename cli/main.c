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

static int print_version(const struct cli_options *o)
{
    (void)o;
    printf("kubectl-cadre %s\n", CADRE_VERSION);
    return 0;
}

static int (*const verbs[VERB_COUNT])(const struct cli_options *o) = {
    [VERB_CALL] = verb_call, [VERB_INFO] = verb_request, [VERB_KILL] = verb_request, [VERB_STACK] = verb_stack,
    [VERB_TOP] = verb_top,   [VERB_PUT] = verb_request,  [VERB_GET] = verb_request,  [VERB_FREE] = verb_request,
    [VERB_WHY] = verb_why,   [VERB_LOGS] = verb_logs,    [VERB_CA] = verb_ca,        [VERB_VERSION] = print_version,
};

int main(int argc, char **argv)
{
    static char option[] = "--help";
    struct cli_options o;
    cJSON_InitHooks(&(cJSON_Hooks){xmalloc, free}); // a lack of memory ends the program there, too
    if (argc > 1 && str_eq(argv[1], "run"))
        return verb_run(argv + 1);
    if (argc > 2 && str_eq(argv[1], "help") && str_eq(argv[2], "run"))
        return verb_run((char *[]){argv[2], option, NULL});
    int status = cli_options_parse(argc, argv, &o);
    if (status < 0) {
        process_catch_signals();
        status = verbs[o.verb](&o);
    }
    cli_options_done(&o);
    return fflush(stdout) == 0 ? status : report_unwritten(errno);
}
