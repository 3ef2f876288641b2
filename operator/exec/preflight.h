// SPDX-License-Identifier: Apache-2.0
// `cadre-operator --check`: would an operator with these credentials work here? Every right is tried for real, by reads
// and by writes that change nothing (dryRun, or on names that do not exist). Only the right to make the Secret again,
// which no write tries while it is there, the API server is asked about.
#pragma once

#include "operator/kube/kube_client.h"

struct preflight_options {
    const char *ns;                 // of the groups, "" = all
    const char *home, *keys_secret; // the operator's own namespace, and its Secret there
};

// Prints a line a check on stdout; turns the loop until all are done. Returns the exit code.
int preflight_run(struct loop *loop, struct kube_client *client, const struct kube_config *config,
                  const struct preflight_options *options);
