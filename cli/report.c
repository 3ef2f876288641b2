// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include "cli/child_process.h"
#include "cli/plain.h"
#include "common/base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int status(void)
{
    return process_interrupted() ? 128 + process_interrupted() : 1;
}

int report_err(const struct err *err)
{
    bool kubectls = str_starts(err->msg, "Error from server") || str_starts(err->msg, "error:");
    fputs(kubectls ? "" : "error: ", stderr);
    plain_print(stderr, err->msg, strlen(err->msg));
    fputc('\n', stderr);
    return status();
}

int report_failure(const cadre_client_error *e)
{
    fputs("Error (", stderr);
    plain_print(stderr, e->name, strlen(e->name));
    fputs("): ", stderr);
    plain_print(stderr, e->message, strlen(e->message));
    fputc('\n', stderr);
    if (e->rank >= 0) {
        fprintf(stderr, "  rank %d", e->rank);
        if (e->pod[0])
            fprintf(stderr, ", pod %s", e->pod);
        if (e->node[0])
            fprintf(stderr, ", node %s", e->node);
        if (e->exit_code >= 0)
            fprintf(stderr, ", exit code %d", e->exit_code);
        fputc('\n', stderr);
    }
    return status();
}

int report_unwritten(int error_number)
{
    if (error_number != EPIPE)
        fprintf(stderr, "error: cannot write the output: %s\n", strerror(error_number));
    return status();
}
