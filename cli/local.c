// SPDX-License-Identifier: Apache-2.0
#include "cli/local.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/rundir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int use_socket(const struct cli_options *o, const char *path, char **ret_server, char **ret_ns)
{
    char ns[RUNDIR_NAMESPACE_SIZE];
    const char *file = strrchr(path, '/');
    *ret_server = xasprintf("unix:%s", path);
    if (!o->ns && file && o->group && rundir_namespace(file + 1, o->group, ns))
        *ret_ns = xstrdup(ns);
    return 0;
}

static bool names_a_cluster(const struct cli_options *o)
{
    return o->n_kubectl || o->token || o->token_file || o->service_account || o->ca_file;
}

int local_find(const struct cli_options *o, char **ret_server, char **ret_ns, struct err *err)
{
    const char *set = getenv("CADRE_SOCKET");
    char path[RUNDIR_PATH_SIZE], ns[RUNDIR_NAMESPACE_SIZE];
    if (o->server) {
        *ret_server = xstrdup(o->server);
        return 0;
    }
    if (o->socket)
        return use_socket(o, o->socket, ret_server, ret_ns);
    if (names_a_cluster(o))
        return 0;
    if (!str_empty(set))
        return use_socket(o, set, ret_server, ret_ns);
    if (!o->group) // all groups of a namespace, which only a cluster has
        return 0;
    int r = rundir_find(o->group, o->ns, path, ns, err);
    if (r <= 0)
        return r;
    fprintf(stderr, "(%s/%s runs on this machine, at %s; --context names a cluster)\n", ns, o->group, path);
    return use_socket(o, path, ret_server, ret_ns);
}
