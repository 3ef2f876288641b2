// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/batch.h"

#include "bench/lib/proc.h"
#include "bench/lib/samples.h"
#include "common/base/mem.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 1024, NEXT = 3 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench: batch: %s: %s\n", what, why);
    exit(1);
}

static void *make(size_t bytes, size_t *ret_len)
{
    cadre_client_error error;
    void *doc;
    char *values = xmalloc(bytes);
    memset(values, 7, bytes);
    const cadre_client_tensor t = {.name = "x",
                                   .dtype = "F32",
                                   .shape = {bytes / COLUMNS / 4, COLUMNS},
                                   .n_dims = 2,
                                   .data = values,
                                   .len = bytes};
    if (cadre_client_batch_write(&t, 1, NULL, NULL, &doc, ret_len, &error) != CADRE_CLIENT_OK)
        die("making it", error.message);
    free(values);
    return doc;
}

static cadre_client *connect_to(const char *address, const char *ns, size_t len)
{
    cadre_client_options o;
    cadre_client_error error;
    cadre_client *c;
    cadre_client_options_init(&o);
    o.address = address;
    o.ns = ns;
    o.token = "bench";
    o.max_body = len;
    o.max_bytes = 3 * len;
    if (cadre_client_open(&o, &c, &error) != CADRE_CLIENT_OK)
        die(address, error.message);
    return c;
}

// The peak then counts only what comes now.
static void forget_peak(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    FILE *f = fopen(path, "w");
    if (!f || fputs("5", f) < 0 || fclose(f) != 0)
        die(path, "cannot be written");
}

static void cpu_add(const struct batch_processes *of, double sign, double cpu[3])
{
    cpu[0] += sign * proc_cpu_s(getpid());
    cpu[1] += sign * proc_cpu_s(of->proxy);
    for (size_t i = 0; i < of->n_ranks; i++)
        cpu[2] += sign * proc_cpu_s(of->ranks[i]);
}

// Returns the seconds that it took; adds those of CPU to `cpu`.
static double call_once(cadre_client *c, const char *group, const void *doc, size_t len,
                        const struct batch_processes *of, double cpu[3])
{
    cadre_client_request r;
    cadre_client_error error;
    cadre_client_json result;
    cadre_client_request_init(&r, "echo");
    r.group = group;
    r.batch = doc;
    r.batch_len = len;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    cpu_add(of, -1, cpu);
    int64_t begin = proc_now_us();
    if (cadre_client_call(c, &r, &result, &error) != CADRE_CLIENT_OK)
        die("the call", error.message);
    int64_t end = proc_now_us();
    cpu_add(of, 1, cpu);
    if (result.len != len || memcmp(result.text, doc, len) != 0)
        die("the result", "is not what was sent");
    return (double)(end - begin) / 1e6;
}

void batch_call(const char *address, const char *ns, const char *group, size_t bytes, const struct batch_processes *of,
                struct batch_numbers *ret)
{
    size_t len, small_len;
    struct samples next = {.n = 0};
    double ignored[3] = {0};
    void *doc = make(bytes, &len), *small = make((size_t)4 << 20, &small_len);
    cadre_client *c = connect_to(address, ns, len);
    call_once(c, group, small, small_len, of, ignored); // connected, ready
    double had = proc_memory(of->proxy).rss;
    forget_peak(of->proxy);
    *ret = (struct batch_numbers){.first = call_once(c, group, doc, len, of, ignored)};
    for (int i = 0; i < NEXT; i++)
        samples_add(&next, call_once(c, group, doc, len, of, ret->cpu));
    for (int i = 0; i < 3; i++)
        ret->cpu[i] /= NEXT;
    ret->seconds = samples_median(&next);
    ret->proxy_mb = (proc_memory(of->proxy).peak - had) * 1.048576;
    cadre_client_close(c);
    free(doc);
    free(small);
}
