// SPDX-License-Identifier: Apache-2.0
// kubectl, with the user's options for it (context, user ...): whatever it accepts for reaching a cluster works here.
#pragma once

#include "cli/child_process.h"
#include "cli/cli_options.h"
#include "cli/document.h"

enum { KUBECTL_ARGS_MAX = 20 + CLI_OPTIONS_KUBECTL_MAX };

struct kubectl_args { // NULL-terminated; borrows
    const char *argv[KUBECTL_ARGS_MAX];
};

// "kubectl", the user's options, then these up to a NULL (18 at most).
struct kubectl_args kubectl_args(const struct cli_options *o, ...) __attribute__((sentinel));
// Runs it and collects its output. ERR_NOT_FOUND if its message says (NotFound), otherwise ERR_INTERNAL. The error has
// kubectl's message, which is for people.
int kubectl_run(const struct kubectl_args *args, struct buf *out, struct err *err);
// Runs it and reads the JSON that it prints. The caller ends the result with cJSON_Delete(). NULL and an error: one of
// kubectl_run(), or the output is not JSON.
cJSON *kubectl_json(const struct kubectl_args *args, struct err *err);
// The namespace to work in, owned by the caller; NULL and an error.
char *kubectl_namespace(const struct cli_options *o, struct err *err);
