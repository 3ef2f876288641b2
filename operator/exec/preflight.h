// SPDX-License-Identifier: Apache-2.0
// `cadre-operator --check`: tells whether an operator with these credentials would work here. It tries every right with
// requests that change nothing: reads, dryRun, and names that do not exist. There is one exception, the right to create
// the Secret: no write can try it while the Secret exists, so it asks the API server.
#pragma once

#include "operator/kube/kube_client.h"

struct preflight_options {
    const char *ns;                 // namespace of the groups; "" = all
    const char *home, *keys_secret; // the operator's own namespace, and the Secret there
};

// Prints a line per check on stdout. Turns the loop until all checks are done. Returns the exit code.
int preflight_run(struct loop *loop, struct kube_client *client, const struct kube_config *config,
                  const struct preflight_options *options);
