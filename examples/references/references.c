// SPDX-License-Identifier: Apache-2.0
// A client that gets only the end result: the actor's result stays on the workers, the critic gets a reference to it,
// and the client fetches the critic's result. The group is in examples/roles.yaml.
//
//   cc references.c $(pkg-config --cflags --libs cadre_client) -o references
//   ./references wss://cadre-operator.cadre-system.svc:9443 default ppo
//
// In a pod it shows the token that it finds in CADRE_TOKEN_FILE and trusts the CA in CADRE_CA_FILE.
#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, WAIT_MS = 30 * 1000 };

static cadre_client *client;

static int fail(const char *what, const cadre_client_error *error)
{
    fprintf(stderr, "references: %s: %s: %s\n", what, error->name, error->message);
    return 1;
}

// A result is valid until the next call only.
static cadre_client_json copy(cadre_client_json j)
{
    char *text = malloc(j.len + 1);
    if (!text)
        abort();
    memcpy(text, j.text, j.len);
    text[j.len] = '\0';
    return (cadre_client_json){text, j.len};
}

// Sends the batch to all ranks. Each rank keeps its rows.
static int put(cadre_client_json *ret)
{
    const float values[ROWS] = {0, 1, 2, 3};
    const cadre_client_tensor a = {
        .name = "a", .dtype = "F32", .shape = {ROWS}, .n_dims = 1, .data = values, .len = sizeof values};
    cadre_client_json batch, reference;
    cadre_client_request to;
    cadre_client_error error;
    void *bytes;
    if (cadre_client_batch_write(&a, 1, NULL, NULL, &bytes, &batch.len, &error) != CADRE_CLIENT_OK)
        return fail("batch", &error);
    batch.text = bytes;
    cadre_client_request_init(&to, NULL);
    to.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    to.timeout_ms = WAIT_MS;
    cadre_client_code code = cadre_client_object_put(client, &to, batch, &reference, &error);
    free(bytes);
    if (code != CADRE_CLIENT_OK)
        return fail("put", &error);
    *ret = copy(reference);
    return 0;
}

// Calls the method of the role with the objects of the reference. The result stays on the workers.
static int call(const char *role, const char *method, cadre_client_json reference, cadre_client_json *ret)
{
    cadre_client_request request;
    cadre_client_json result;
    cadre_client_error error;
    cadre_client_request_init(&request, method);
    request.role = role;
    request.args = reference;
    request.by_reference = 1;
    request.timeout_ms = WAIT_MS;
    if (cadre_client_call(client, &request, &result, &error) != CADRE_CLIENT_OK)
        return fail(method, &error);
    *ret = copy(result);
    return 0;
}

static int print(const char *what, cadre_client_json reference)
{
    cadre_client_json batch;
    cadre_client_tensor a;
    cadre_client_error error;
    float values[ROWS];
    if (cadre_client_object_get(client, reference, WAIT_MS, &batch, &error) != CADRE_CLIENT_OK ||
        cadre_client_batch_tensor(batch, "a", &a, &error) != CADRE_CLIENT_OK)
        return fail("get", &error);
    if (a.len != sizeof values)
        return 1;
    memcpy(values, a.data, sizeof values); // it may lie at any address
    printf("%s: %g %g %g %g\n", what, values[0], values[1], values[2], values[3]);
    return 0;
}

// Frees objects at once. The others are freed at the end of this session.
static int drop(cadre_client_json reference)
{
    cadre_client_json batch;
    cadre_client_error error;
    if (cadre_client_object_free(client, reference, WAIT_MS, &error) != CADRE_CLIENT_OK)
        return fail("free", &error);
    if (cadre_client_object_get(client, reference, WAIT_MS, &batch, &error) != CADRE_CLIENT_NOT_FOUND)
        return 1;
    printf("freed: %s\n", error.name);
    return 0;
}

// A later session may get it: it stays until it is freed, or until its worker ends.
static int pin(cadre_client_json reference)
{
    cadre_client_error error;
    if (cadre_client_object_pin(client, reference, WAIT_MS, &error) != CADRE_CLIENT_OK)
        return fail("pin", &error);
    printf("kept: %.*s\n", (int)reference.len, reference.text);
    return 0;
}

int main(int argc, char **argv)
{
    cadre_client_options options;
    cadre_client_error error;
    cadre_client_json prompts = {NULL, 0}, answers = {NULL, 0}, scores = {NULL, 0};
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
    int failed = put(&prompts) || call("actor", "add", prompts, &answers) || call("critic", "sub", answers, &scores) ||
                 print("scores", scores) || drop(answers) || pin(scores);
    free((char *)prompts.text);
    free((char *)answers.text);
    free((char *)scores.text);
    cadre_client_close(client);
    return failed;
}
