// SPDX-License-Identifier: Apache-2.0
// One call to the operator, by whichever way leads to it.
#ifndef CADRE_CLI_CONTROLLER_H
#define CADRE_CLI_CONTROLLER_H

#include "cli/tunnel.h"
#include "common/base/buf.h"
#include "sdk/c/include/cadre/client.h"

#include <stdio.h>

struct controller {
    struct tunnel tunnel;
    cadre_client *client;
    char *ns, *token;
    char *server; // the address, "unix:/PATH" of a local run; NULL: through the API server
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

// On an error the controller is closed.
int controller_open(struct controller *c, const struct options *o, struct err *err);
void controller_close(struct controller *c);
// Waits for the answer; c->result on success, c->error on CADRE_CLIENT_* (returned), also where nobody can be reached.
cadre_client_code controller_call(struct controller *c, cadre_client_request *request);
// All of it: opens, calls, shows the answer or the error, closes. Returns the exit status, which is that of `show`
// where the call went well.
int controller_run(const struct options *o, const cadre_client_request *request,
                   int (*show)(const struct options *o, const struct controller *c));

// The connection goes on without a call, until so much time has passed or a signal comes.
void controller_linger(struct controller *c, int64_t ms);

#endif
