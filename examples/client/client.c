// SPDX-License-Identifier: Apache-2.0
// A client: calls add() of the accumulator on every rank and prints what each has answered.
//
//   cc client.c $(pkg-config --cflags --libs cadre_client) -o client
//   ./client wss://cadre-operator.cadre-system.svc:9443 default accumulator
//
// In a pod it shows the token that it finds in CADRE_TOKEN_FILE and trusts the CA in CADRE_CA_FILE.
#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, const cadre_client_error *error)
{
    fprintf(stderr, "client: %s: %s: %s\n", what, error->name, error->message);
    return 1;
}

// One call to all ranks, which is waited for.
static int add(cadre_client *client, const char *args)
{
    cadre_client_request request;
    cadre_client_json results, result;
    cadre_client_error error;
    cadre_client_request_init(&request, "add");
    request.args.text = args;
    request.args.len = strlen(args);
    request.timeout_ms = 30 * 1000;
    if (cadre_client_call(client, &request, &results, &error) != CADRE_CLIENT_OK)
        return fail("add()", &error);
    printf("add(%s):", args);
    while (cadre_client_list_next(&results, &result) == 1)
        printf(" %.*s", (int)result.len, result.text);
    printf("\n");
    return 0;
}

static void count(void *ctx, const cadre_client_answer *answer)
{
    int *good = ctx;
    *good += answer->error == NULL;
}

// Many calls at a time: each is started, then all are waited for.
static int get_many(cadre_client *client, int n)
{
    cadre_client_request request;
    cadre_client_error error;
    int good = 0;
    cadre_client_request_init(&request, "get_value");
    request.timeout_ms = 30 * 1000;
    request.done = count;
    request.ctx = &good;
    for (int i = 0; i < n; i++)
        if (cadre_client_start(client, &request, NULL, &error) != CADRE_CLIENT_OK)
            return fail("get_value()", &error);
    while (cadre_client_pending(client))
        cadre_client_wait(client, -1);
    printf("get_value(): %d of %d calls were answered\n", good, n);
    return good != n;
}

int main(int argc, char **argv)
{
    cadre_client_options options;
    cadre_client *client;
    cadre_client_error error;
    if (argc != 4) {
        fprintf(stderr, "Usage: %s ADDRESS NAMESPACE GROUP\n", argv[0]);
        return 2;
    }
    cadre_client_options_init(&options);
    options.address = argv[1];
    options.ns = argv[2];
    options.group = argv[3];
    options.token_file = getenv("CADRE_TOKEN_FILE");
    options.ca_file = getenv("CADRE_CA_FILE");
    if (cadre_client_open(&options, &client, &error) != CADRE_CLIENT_OK)
        return fail("open", &error);
    int failed = add(client, "[10]") || add(client, "{\"x\": 1}") || get_many(client, 1000);
    cadre_client_close(client);
    return failed;
}
