// SPDX-License-Identifier: Apache-2.0
// bench-echo ADDRESS NAMESPACE GROUP [SECONDS]: what one rank of the echo module gives back, one call at a time:
// batches of 1 and 60 MiB, and 1 MiB as JSON. For a group that runs already, such as one of cadre-local.
#include "bench/lib/proc.h"
#include "common/base/mem.h"
#include "sdk/c/include/cadre/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 1 << 20 };

struct bench {
    cadre_client *client;
    double seconds;
    int64_t *us; // of each round
};

static void must(cadre_client_code code, const cadre_client_error *e)
{
    if (code == CADRE_CLIENT_OK)
        return;
    fprintf(stderr, "bench-echo: %s: %s\n", e->name, e->message);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(struct bench *b, const char *name, const cadre_client_request *r, const void *sent, size_t len)
{
    cadre_client_error e;
    cadre_client_json result;
    size_t n = 0;
    int64_t begin = proc_now_us();
    must(cadre_client_call(b->client, r, &result, &e), &e); // maps and faults what there is
    must(cadre_client_call(b->client, r, &result, &e), &e);
    for (begin = proc_now_us(); n < ROUNDS_MAX && (double)(proc_now_us() - begin) < b->seconds * 1e6; n++) {
        int64_t from = proc_now_us();
        must(cadre_client_call(b->client, r, &result, &e), &e);
        b->us[n] = proc_now_us() - from;
    }
    double took = (double)(proc_now_us() - begin) / 1e6;
    if (result.len != len || memcmp(result.text, sent, len) != 0) {
        fprintf(stderr, "bench-echo: what came back (%zu bytes) is not what was sent (%zu)\n", result.len, len);
        exit(1);
    }
    qsort(b->us, n, sizeof *b->us, by_value);
    printf("%-14s %8.1f calls/s  p50 %8.3f ms  %6.2f GB/s each way\n", name, (double)n / took,
           (double)b->us[n / 2] / 1000, (double)n * (double)len / took / 1e9);
}

static void json_echo(struct bench *b, const char *name, size_t len)
{
    cadre_client_request r;
    char *text = xmalloc(len);
    memset(text, 'x', len);
    memcpy(text, "[\"", 2);
    memcpy(text + len - 2, "\"]", 2);
    cadre_client_request_init(&r, "echo");
    r.rank = 0;
    r.args = (cadre_client_json){text, len};
    measure(b, name, &r, text, len);
    free(text);
}

// A piece to each rank, and one batch of what comes back.
static void check_joined(cadre_client_json result, const cadre_client_tensor *sent)
{
    cadre_client_tensor t;
    cadre_client_error e;
    must(cadre_client_batch_tensor(result, "a", &t, &e), &e);
    if (t.len == sent->len && memcmp(t.data, sent->data, t.len) == 0)
        return;
    fprintf(stderr, "bench-echo: what was cut is not joined as it was\n");
    exit(1);
}

static void batch_echo(struct bench *b, const char *name, size_t len)
{
    cadre_client_request r;
    cadre_client_error e;
    char *data = xmalloc(len);
    void *doc;
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i / 1024 * 7 + i);
    const cadre_client_tensor t = {
        .name = "a", .dtype = "U8", .shape = {len / 1024, 1024}, .n_dims = 2, .data = data, .len = len};
    cadre_client_request_init(&r, "echo");
    r.rank = 0;
    must(cadre_client_batch_write(&t, 1, NULL, NULL, &doc, &r.batch_len, &e), &e);
    r.batch = doc;
    measure(b, name, &r, doc, r.batch_len);
    r.rank = -1;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    cadre_client_json joined;
    must(cadre_client_call(b->client, &r, &joined, &e), &e);
    check_joined(joined, &t);
    free(doc);
    free(data);
}

int main(int argc, char **argv)
{
    struct bench b = {.seconds = argc > 4 ? strtod(argv[4], NULL) : 3, .us = xcalloc(ROUNDS_MAX, sizeof(int64_t))};
    cadre_client_options o;
    cadre_client_error e;
    if (argc < 4) {
        fprintf(stderr, "usage: bench-echo ADDRESS NAMESPACE GROUP [SECONDS]\n");
        return 64;
    }
    cadre_client_options_init(&o);
    o.address = argv[1];
    o.ns = argv[2];
    o.group = argv[3];
    o.max_body = (size_t)128 << 20;
    must(cadre_client_open(&o, &b.client, &e), &e);
    batch_echo(&b, "1 MiB, batch", (size_t)1 << 20);
    batch_echo(&b, "60 MiB, batch", (size_t)60 << 20);
    json_echo(&b, "1 MiB, JSON", (size_t)1 << 20);
    cadre_client_close(b.client);
    free(b.us);
    return 0;
}
