// SPDX-License-Identifier: Apache-2.0
// `cadre-operator --check`: would an operator with these credentials work here? It tries every right, with reads and
// with writes that change nothing (dryRun, or names that do not exist). Only for the right to create the Secret, it
// asks the API server, because no write can try it while the Secret exists.
#pragma once

#include "operator/kube/kube_client.h"

struct preflight_options {
    const char *ns;                 // of the groups, "" = all
    const char *home, *keys_secret; // the operator's own namespace, and its Secret there
};

// Prints a line a check on stdout; turns the loop until all are done. Returns the exit code.
int preflight_run(struct loop *loop, struct kube_client *client, const struct kube_config *config,
                  const struct preflight_options *options);
