// SPDX-License-Identifier: Apache-2.0
// `kubectl cadre logs` through the operator, or for a local run: lines as the ranks print them, equal lines as one.
#include "cli/listen.h"

#include "cli/child_process.h"
#include "cli/local.h"
#include "cli/proxy.h"
#include "cli/report.h"
#include "common/base/clock.h"
#include "common/base/str.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60 * 1000, LOOK_MS = 1000, AGAIN_MS = 30 * 1000 };

struct failure { // why nobody sends lines
    struct err err;
    cadre_client_error of_call; // if `err` is none
};

static bool goes_on(void)
{
    return !process_interrupted() && !ferror(stdout);
}

// Prints lines until the connection ends. Another proxy does not know what this one was asked for. Returns whether it
// was told to send lines.
static bool follow_connection(const struct cli_options *o, struct failure *why)
{
    struct proxy c;
    cadre_client_request r;
    *why = (struct failure){.err = ERR_INIT};
    if (proxy_open(&c, o, &why->err) < 0)
        return false;
    cadre_client_request_init(&r, "group.output"); // the operator reports that there is no such group
    r.timeout_ms = TIMEOUT_MS;
    bool told = proxy_call(&c, &r) == CADRE_CLIENT_OK;
    unsigned connections = c.connections;
    why->of_call = c.error;
    while (told && goes_on() && c.connected && c.connections == connections)
        proxy_linger((struct proxy *[]){&c}, 1, LOOK_MS);
    if (told && goes_on())
        fprintf(stderr, "[the connection was lost (%s); lines may be missing]\n", c.lost.message);
    proxy_close(&c);
    return told;
}

static bool may_end(const struct failure *why)
{
    return why->err.code || why->of_call.code == CADRE_CLIENT_UNAVAILABLE || why->of_call.code == CADRE_CLIENT_IO ||
           why->of_call.code == CADRE_CLIENT_TIMEOUT;
}

// A local run that has ended leaves no socket.
static bool has_ended(const struct cli_options *o)
{
    return o->server && str_starts(o->server, "unix:") && access(o->server + strlen("unix:"), F_OK) != 0;
}

// Each connection has a new token, because the operator closes a connection whose token has expired. A cluster that has
// sent lines may be away for a while.
static int follow(const struct cli_options *o)
{
    int64_t end = 0;
    while (goes_on()) {
        struct failure why;
        if (follow_connection(o, &why)) {
            if (has_ended(o))
                break;
            end = clock_mono_ms(&clock_system) + AGAIN_MS;
        } else if (!may_end(&why) || clock_mono_ms(&clock_system) >= end) {
            return why.err.code ? report_err(&why.err) : report_failure(&why.of_call);
        }
        poll(NULL, 0, LOOK_MS);
    }
    return process_interrupted() ? 128 + process_interrupted() : 0;
}

bool listen_serves(const struct cli_options *o, int *ret_status)
{
    struct cli_options own = *o;
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
