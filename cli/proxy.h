// SPDX-License-Identifier: Apache-2.0
// One call to the operator, over any of the possible ways.
#pragma once

#include "cli/tunnel.h"
#include "common/base/buf.h"
#include "sdk/c/include/cadre/client.h"

#include <stdio.h>

struct proxy {
    struct tunnel tunnel;
    cadre_client *client;
    char *ns, *token;
    char *server;      // the address, "unix:/PATH" of a local run; NULL: through the API server
    char *server_name; // in its certificate; NULL = the host of the address
    int64_t reach_ms;  // so long until somebody must have welcomed us
    bool connected;
    cadre_client_error lost; // why it is not
    FILE *lines;             // where what ranks print goes
    int64_t only_rank;       // of it; -1 = all
    // The answer
    bool over;
    struct buf result;
    int64_t rank; // whose it is, -1 = a list of all ranks
    cadre_client_error error;
};

// On an error the proxy is closed.
int proxy_open(struct proxy *c, const struct options *o, struct err *err);
// Another connection by the same way, while the other one is open. It may lead to another replica of the operator: of a
// server with several addresses it is to the nth, in turn.
int proxy_beside(struct proxy *c, const struct proxy *other, const struct options *o, unsigned nth, struct err *err);
void proxy_close(struct proxy *c);
// Waits for the answer; c->result on success, c->error on CADRE_CLIENT_* (returned), also where nobody can be reached.
cadre_client_code proxy_call(struct proxy *c, cadre_client_request *request);
// As if the last call had failed that way; returns the code.
cadre_client_code proxy_fail(struct proxy *c, cadre_client_code code, const char *what, const char *why);
// Opens, has it used, closes. Returns the exit status: the one of `use`, if it was opened.
int proxy_with(const struct options *o, int (*use)(const struct options *o, struct proxy *c, void *ctx), void *ctx);
// All of it: opens, calls, shows the answer or the error, closes. Returns the exit status, the one of `show`
// where the call went well.
int proxy_run(const struct options *o, const cadre_client_request *request,
              int (*show)(const struct options *o, const struct proxy *c));

// The connections go on without a call, until so much time has passed or a signal comes.
void proxy_linger(struct proxy *const *list, size_t n, int64_t ms);
