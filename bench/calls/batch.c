// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/batch.h"

#include "bench/lib/proc.h"
#include "common/base/mem.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 1024 };

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

// So that the peak is that of what comes now.
static void forget_peak(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    FILE *f = fopen(path, "w");
    if (!f || fputs("5", f) < 0 || fclose(f) != 0)
        die(path, "cannot be written");
}

// Returns the seconds that it took.
static double call_once(cadre_client *c, const char *group, const void *doc, size_t len)
{
    cadre_client_request r;
    cadre_client_error error;
    cadre_client_json result;
    cadre_client_request_init(&r, "echo");
    r.group = group;
    r.batch = doc;
    r.batch_len = len;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    int64_t begin = proc_now_us();
    if (cadre_client_call(c, &r, &result, &error) != CADRE_CLIENT_OK)
        die("the call", error.message);
    int64_t end = proc_now_us();
    if (result.len != len || memcmp(result.text, doc, len) != 0)
        die("the result", "is not what was sent");
    return (double)(end - begin) / 1e6;
}

void batch_call(const char *address, const char *ns, const char *group, size_t bytes, pid_t proxy,
                struct batch_numbers *ret)
{
    size_t len, small_len;
    void *doc = make(bytes, &len), *small = make((size_t)4 << 20, &small_len);
    cadre_client *c = connect_to(address, ns, len);
    call_once(c, group, small, small_len); // connected, ready
    double had = proc_memory(proxy).rss, cpu[2] = {proc_cpu_s(getpid()), proc_cpu_s(proxy)};
    forget_peak(proxy);
    ret->seconds = call_once(c, group, doc, len);
    ret->proxy_mb = (proc_memory(proxy).peak - had) * 1.048576;
    ret->cpu[0] = proc_cpu_s(getpid()) - cpu[0];
    ret->cpu[1] = proc_cpu_s(proxy) - cpu[1];
    cadre_client_close(c);
    free(doc);
    free(small);
}
