// SPDX-License-Identifier: Apache-2.0
// A way to the operator through the API server: `kubectl proxy` on a Unix socket in a private directory.
#pragma once

#include "cli/cli_options.h"
#include "common/base/err.h"

#include <sys/types.h>

struct tunnel {
    char dir[64];
    char address[96]; // unix:/path
    char prefix[320]; // comes before the operator's own paths
    pid_t pid;
    int err_fd; // its messages
};

#define TUNNEL_NONE ((struct tunnel){.pid = -1, .err_fd = -1})

int tunnel_open(struct tunnel *t, const struct cli_options *o, struct err *err);
struct tunnel tunnel_borrow(const struct tunnel *t); // the same tunnel; closing the copy ends nothing
void tunnel_close(struct tunnel *t); // also for one that is not open: ends kubectl, removes the directory
