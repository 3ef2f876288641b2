// SPDX-License-Identifier: Apache-2.0
// A client that submits all tasks at once, and takes each result as it arrives.
//
//   cc submit.c $(pkg-config --cflags --libs cadre_client) -o submit
//   ./submit wss://cadre-operator.cadre-system.svc:9443 default tasks
//
// In a pod it shows the token that it finds in CADRE_TOKEN_FILE and trusts the CA in CADRE_CA_FILE.
#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TASKS = 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what, const cadre_client_error *error)
{
    fprintf(stderr, "submit: %s: %s: %s\n", what, error->name, error->message);
    return 1;
}

// Returns at once: the answer is kept until somebody asks.
static uint64_t submit(cadre_client *client, const char *method, const char *args, cadre_client_error *error)
{
    cadre_client_request request;
    uint64_t id = 0;
    cadre_client_request_init(&request, method);
    request.args = (cadre_client_json){args, strlen(args)};
    request.keep = 1;
    cadre_client_start(client, &request, &id, error);
    return id;
}

static int squares(cadre_client *client)
{
    uint64_t ids[TASKS];
    cadre_client_error error;
    cadre_client_json result;
    char args[16];
    double begin = now();
    for (int i = 0; i < TASKS; i++) {
        snprintf(args, sizeof args, "[%d]", i);
        if (!(ids[i] = submit(client, "example_task", args, &error)))
            return fail("example_task()", &error);
    }
    printf("submitted after %.3f s\n", now() - begin);
    for (int i = 0; i < TASKS; i++) { // whichever is done first
        uint64_t id = cadre_client_next(client, -1);
        int x = 0;
        while (ids[x] != id)
            x++;
        printf("example_task(%d) is done after %.1f s\n", x, now() - begin);
    }
    printf("all: [");
    for (int i = 0; i < TASKS; i++) { // in the order in which they were submitted
        if (cadre_client_get(client, ids[i], &result, &error) != CADRE_CLIENT_OK)
            return fail("example_task()", &error);
        printf("%s%.*s", i ? ", " : "", (int)result.len, result.text);
    }
    printf("]\n");
    return 0;
}

static int add(cadre_client *client)
{
    cadre_client_error error;
    cadre_client_json result;
    uint64_t id = submit(client, "add", "[1, 2]", &error);
    if (!id || cadre_client_get(client, id, &result, &error) != CADRE_CLIENT_OK)
        return fail("add()", &error);
    printf("add(1, 2): [%.*s]\n", (int)result.len, result.text);
    return 0;
}

// The call is tried again three times. Then the answer is the method's own error.
static int flaky(cadre_client *client)
{
    cadre_client_request request;
    cadre_client_error error;
    cadre_client_request_init(&request, "flaky");
    request.max_retries = 3;
    request.retry_on = "FAILED";
    if (cadre_client_call(client, &request, NULL, &error) == CADRE_CLIENT_OK)
        return 1;
    printf("flaky(): %s: %s\n", error.name, error.message);
    return error.code != CADRE_CLIENT_FAILED;
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
    int failed = squares(client) || add(client) || flaky(client);
    cadre_client_close(client);
    return failed;
}
