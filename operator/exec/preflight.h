// SPDX-License-Identifier: Apache-2.0
// `cadre-operator --check`: tells whether an operator with these credentials would work here. It tries every right with
// requests that change nothing: reads, dryRun, and names that do not exist. Only for the right to create the Secret, it
// asks the API server, because no write can try that while the Secret exists.
#pragma once

#include "operator/kube/kube_client.h"

struct preflight_options {
    const char *ns;                 // namespace of the groups; "" = all
    const char *home, *keys_secret; // the operator's own namespace, and the Secret there
};

// Prints a line per check on stdout. Turns the loop until all checks are done. Returns the exit code.
int preflight_run(struct loop *loop, struct kube_client *client, const struct kube_config *config,
                  const struct preflight_options *options);
