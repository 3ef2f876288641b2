// SPDX-License-Identifier: Apache-2.0
// Groups of this machine (`kubectl cadre run`), called without a cluster.
#pragma once

#include "cli/cli_options.h"
#include "common/base/err.h"

// The address to call without kubectl: --server or --socket. If no option names a cluster, also $CADRE_SOCKET, or the
// socket of a group with that name that runs here (reported on stderr). *ret_server NULL: the group is in a cluster.
// *ret_ns: the namespace, if the socket's name has it; otherwise NULL. The caller frees both.
int local_find(const struct cli_options *o, char **ret_server, char **ret_ns, struct err *err);
