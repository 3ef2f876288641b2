// SPDX-License-Identifier: Apache-2.0
// Groups of this machine (`kubectl cadre run`), called without a cluster.
#pragma once

#include "cli/cli_options.h"
#include "common/base/err.h"

// The address to call without kubectl: --server, --socket, $CADRE_SOCKET or, where no option names a cluster, the
// socket of a group with that name which runs here (said on stderr). *ret_server NULL: it is in a cluster. *ret_ns:
// where the socket tells; NULL otherwise. Both are the caller's.
int local_find(const struct options *o, char **ret_server, char **ret_ns, struct err *err);
