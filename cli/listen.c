// SPDX-License-Identifier: Apache-2.0
// `kubectl cadre logs` through the operator, or for a local run: lines as the ranks print them, equal lines as one.
#include "cli/listen.h"

#include "cli/child_process.h"
#include "cli/local.h"
#include "cli/proxy.h"
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 60 * 1000, LOOK_MS = 1000 };

static bool goes_on(void)
{
    return !process_interrupted() && !ferror(stdout);
}

// Prints lines until the connection ends. Another proxy does not know what this one was asked for. Returns the exit
// status.
static int follow_connection(const struct options *o)
{
    struct proxy c;
    struct err err = ERR_INIT;
    cadre_client_request r;
    if (proxy_open(&c, o, &err) < 0)
        return report_err(&err);
    cadre_client_request_init(&r, "group.output"); // the operator reports that there is no such group
    r.timeout_ms = TIMEOUT_MS;
    int status = proxy_call(&c, &r) == CADRE_CLIENT_OK ? 0 : report_failure(&c.error);
    unsigned connections = c.connections;
    while (status == 0 && goes_on() && c.connected && c.connections == connections)
        proxy_linger((struct proxy *[]){&c}, 1, LOOK_MS);
    if (status == 0 && goes_on())
        fprintf(stderr, "[the connection was lost (%s); lines may be missing]\n", c.lost.message);
    proxy_close(&c);
    return status;
}

// Each connection has a new token, because the operator closes a connection whose token has expired.
static int follow(const struct options *o)
{
    int status = 0;
    while (status == 0 && goes_on())
        status = follow_connection(o);
    return process_interrupted() ? 128 + process_interrupted() : status;
}

bool listen_serves(const struct options *o, int *ret_status)
{
    struct options own = *o;
    struct err err = ERR_INIT;
    char *server = NULL, *ns = NULL;
    bool local = local_find(o, &server, &ns, &err) == 0 && server;
    bool serves = local || o->fold || err.code;
    own.logs = true;
    own.server = local ? server : o->server;
    own.ns = ns ? ns : o->ns;
    if (serves && !err.code && !o->follow)
        err_set(&err, ERR_INVALID, "the earlier output is in %s; -f shows new output",
                local ? "the output of the local run" : "the pods' logs");
    if (serves)
        *ret_status = err.code ? report_err(&err) : follow(&own);
    free(server);
    free(ns);
    return serves;
}
