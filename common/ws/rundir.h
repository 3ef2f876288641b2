// SPDX-License-Identifier: Apache-2.0
// The sockets of groups that run on this machine without a cluster: GROUP.NAMESPACE.sock in $XDG_RUNTIME_DIR/cadre,
// otherwise in /tmp/cadre-UID, a directory that only its user can read.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

enum {
    RUNDIR_PATH_SIZE = 108, // of sun_path
    RUNDIR_NAMESPACE_SIZE = 64,
};

// The path of a group's socket. Makes the directory if it is not there. ERR_LIMIT: longer than a socket's path can be.
// ERR_FORBIDDEN: the directory belongs to another user, or is open to others.
int rundir_socket(const char *ns, const char *group, char ret[RUNDIR_PATH_SIZE], struct err *err);
// The path of the file with the token of a group that takes calls at a port, GROUP.NAMESPACE.token; as above.
int rundir_token(const char *ns, const char *group, char ret[RUNDIR_PATH_SIZE], struct err *err);
// The socket of a group that takes calls now; `ns` NULL: of any namespace. Returns 1 and its namespace, 0: there is
// none. ERR_INVALID: of several namespaces; ERR_FORBIDDEN.
int rundir_find(const char *group, const char *ns, char ret[RUNDIR_PATH_SIZE], char ret_ns[RUNDIR_NAMESPACE_SIZE],
                struct err *err);
// Whether a file name without its directory names a socket of the group. Returns its namespace.
bool rundir_namespace(const char *file, const char *group, char ret_ns[RUNDIR_NAMESPACE_SIZE]);
// Whether a process accepts connections there.
bool rundir_is_alive(const char *path);
