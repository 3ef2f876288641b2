// SPDX-License-Identifier: Apache-2.0
// A client that trains and serves: one group computes new weights, and another group gets them, three times.
//
//   cc transfer.c $(pkg-config --cflags --libs cadre_client) -o transfer
//   ./transfer wss://cadre-operator.cadre-system.svc:9443 default trainer server
//
// In a pod it shows the token that it finds in CADRE_TOKEN_FILE and trusts the CA in CADRE_CA_FILE.
#include <cadre/client.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 3, WAIT_MS = 600 * 1000 };

static int fail(const char *what, const cadre_client_error *error)
{
    fprintf(stderr, "transfer: %s: %s: %s\n", what, error->name, error->message);
    return 1;
}

static int call(cadre_client *client, const char *group, const char *method, const char *args)
{
    cadre_client_request request;
    cadre_client_json result;
    cadre_client_error error;
    cadre_client_request_init(&request, method);
    request.group = group;
    request.args = (cadre_client_json){args, strlen(args)};
    request.timeout_ms = WAIT_MS;
    if (cadre_client_call(client, &request, &result, &error) != CADRE_CLIENT_OK)
        return fail(method, &error);
    printf("%s of %s: %.*s\n", method, group, (int)result.len, result.text);
    return 0;
}

static int move(cadre_client *client, const char *source, const char *target)
{
    cadre_client_transfer_options options;
    cadre_client_transferred moved;
    cadre_client_error error;
    cadre_client_transfer_options_init(&options);
    options.source = source;
    options.target = target;
    options.timeout_ms = WAIT_MS;
    if (cadre_client_transfer(client, &options, &moved, &error) != CADRE_CLIENT_OK) {
        if (moved.problems)
            fprintf(stderr, "transfer: %s\n", moved.problems);
        free(moved.problems);
        return fail("the transfer", &error);
    }
    printf("%" PRIu64 " bytes have moved, %" PRIu64 " of them from memory to memory\n", moved.bytes, moved.direct);
    return 0;
}

int main(int argc, char **argv)
{
    cadre_client_options options;
    cadre_client *client;
    cadre_client_error error;
    if (argc != 5) {
        fprintf(stderr, "Usage: %s ADDRESS NAMESPACE TRAINER SERVER\n", argv[0]);
        return 2;
    }
    cadre_client_options_init(&options);
    options.address = argv[1];
    options.ns = argv[2];
    options.token_file = getenv("CADRE_TOKEN_FILE");
    options.ca_file = getenv("CADRE_CA_FILE");
    if (cadre_client_open(&options, &client, &error) != CADRE_CLIENT_OK)
        return fail("open", &error);
    int failed = 0;
    for (int i = 0; i < STEPS && !failed; i++)
        failed = call(client, argv[3], "step", "[1]") || move(client, argv[3], argv[4]) ||
                 call(client, argv[4], "total", "[]");
    cadre_client_close(client);
    return failed;
}
