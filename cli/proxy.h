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
    int64_t reach_ms;  // must be welcomed within this time
    bool connected;
    unsigned connections;    // how many there were
    cadre_client_error lost; // why it is not connected
    FILE *lines;             // gets the output of the ranks
    int64_t only_rank;       // prints only this rank; -1 = all
    // The answer
    bool over;
    struct buf result;
    int64_t rank; // the rank with this result, -1 = a list of all ranks
    cadre_client_error error;
};

// On an error the proxy is closed.
int proxy_open(struct proxy *c, const struct cli_options *o, struct err *err);
// Another connection in the same way, while the first one is open. It may reach another replica of the operator. With a
// server that has several addresses, it goes to the nth address, in turn.
int proxy_beside(struct proxy *c, const struct proxy *other, const struct cli_options *o, unsigned nth,
                 struct err *err);
void proxy_close(struct proxy *c);
// Waits for the answer: c->result on success, c->error on CADRE_CLIENT_* (returned). This includes the case that no
// proxy can be reached.
cadre_client_code proxy_call(struct proxy *c, cadre_client_request *request);
// Reports an error as if the last call had failed with it; returns the code.
cadre_client_code proxy_fail(struct proxy *c, cadre_client_code code, const char *what, const char *why);
// Opens, calls `use`, closes. Returns the exit status: the one from `use`, if it was called.
int proxy_with(const struct cli_options *o, int (*use)(const struct cli_options *o, struct proxy *c, void *ctx),
               void *ctx);
// Does everything: opens, calls, shows the answer or the error, closes. Returns the exit status: the one from `show`,
// if the call succeeded.
int proxy_run(const struct cli_options *o, const cadre_client_request *request,
              int (*show)(const struct cli_options *o, const struct proxy *c));

// Lets the connections work without a call, until this much time has passed or a signal comes.
void proxy_linger(struct proxy *const *list, size_t n, int64_t ms);
