// SPDX-License-Identifier: Apache-2.0
// echo_call ADDRESS NAMESPACE GROUP SECONDS: calls the echo module for this time, and at least once. It calls rank 0
// with 1 MiB of JSON and with batches of 1 and 60 MiB, and the group with a batch that is split and joined. Each must
// come back unchanged. For test_local_memory.sh.
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void must(bool good, const cadre_client_error *e)
{
    if (good)
        return;
    fprintf(stderr, "echo_call: %s: %s\n", e->name, e->message);
    exit(1);
}

static void same(cadre_client_json got, const void *sent, size_t len)
{
    if (got.len == len && memcmp(got.text, sent, len) == 0)
        return;
    fprintf(stderr, "echo_call: what came back (%zu bytes) is not what was sent (%zu)\n", got.len, len);
    exit(1);
}

static cadre_client_json call(cadre_client *c, const cadre_client_request *r)
{
    cadre_client_error e;
    cadre_client_json result;
    must(cadre_client_call(c, r, &result, &e) == CADRE_CLIENT_OK, &e);
    return result;
}

static void echo_json(cadre_client *c, size_t len)
{
    cadre_client_request r;
    char *text = xmalloc(len);
    memset(text, 'x', len);
    memcpy(text, "[\"", 2);
    memcpy(text + len - 2, "\"]", 2);
    cadre_client_request_init(&r, "echo");
    r.rank = 0;
    r.args = (cadre_client_json){text, len};
    same(call(c, &r), text, len);
    free(text);
}

// Sends a batch twice that is filled in the memory that it is sent from.
static void echo_in_place(cadre_client *c, size_t len)
{
    cadre_client_request r;
    cadre_client_error e;
    cadre_client_tensor t = {.name = "a", .dtype = "U8", .shape = {len / 1024, 1024}, .n_dims = 2};
    void *doc;
    cadre_client_request_init(&r, "echo");
    must(cadre_client_batch_new(c, &t, 1, NULL, NULL, &doc, &r.batch_len, &e) == CADRE_CLIENT_OK, &e);
    r.batch = doc;
    r.rank = 0;
    for (char round = 'a'; round < 'c'; round++) {
        memset((char *)doc + (r.batch_len - t.len), round, t.len);
        same(call(c, &r), doc, r.batch_len);
    }
    cadre_client_batch_free(c, doc);
}

static void echo_batch(cadre_client *c, size_t len)
{
    cadre_client_request r;
    cadre_client_error e;
    cadre_client_tensor joined;
    char *data = xmalloc(len);
    void *doc;
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i / 1024 * 7 + i);
    const cadre_client_tensor t = {
        .name = "a", .dtype = "U8", .shape = {len / 1024, 1024}, .n_dims = 2, .data = data, .len = len};
    cadre_client_request_init(&r, "echo");
    must(cadre_client_batch_write(&t, 1, NULL, NULL, &doc, &r.batch_len, &e) == CADRE_CLIENT_OK, &e);
    r.batch = doc;
    r.rank = 0;
    same(call(c, &r), doc, r.batch_len);
    r.rank = -1;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    must(cadre_client_batch_tensor(call(c, &r), "a", &joined, &e) == CADRE_CLIENT_OK, &e);
    same((cadre_client_json){joined.data, joined.len}, data, len);
    free(doc);
    free(data);
}

int main(int argc, char **argv)
{
    cadre_client_options o;
    cadre_client_error e;
    cadre_client *c;
    if (argc != 5) {
        fprintf(stderr, "usage: echo_call ADDRESS NAMESPACE GROUP SECONDS\n");
        return 64;
    }
    int64_t end = clock_mono_ms(&clock_system) + (int64_t)(strtod(argv[4], NULL) * 1000);
    cadre_client_options_init(&o);
    o.address = argv[1];
    o.ns = argv[2];
    o.group = argv[3];
    o.max_body = 128 * MIB;
    must(cadre_client_open(&o, &c, &e) == CADRE_CLIENT_OK, &e);
    do {
        echo_json(c, MIB);
        echo_batch(c, MIB);
        echo_in_place(c, MIB);
        echo_batch(c, 60 * MIB);
        echo_in_place(c, 60 * MIB);
    } while (clock_mono_ms(&clock_system) < end);
    cadre_client_close(c);
    return 0;
}
